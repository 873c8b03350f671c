/** Rules of the linter that are this project's own. */
export default {
  meta: { name: 'own' },
  rules: {
    'no-error-text': {
      create: (context) => ({
        BinaryExpression(node) {
          if (!['===', '!==', '==', '!='].includes(node.operator)) return;
          for (const side of [node.left, node.right]) {
            if (side.type !== 'MemberExpression' || side.property.name !== 'message') continue;
            context.report({
              node,
              message: "Branch on an error's class or code, not on its text.",
            });
          }
        },
      }),
    },
    'zod-namespace': {
      create: (context) => ({
        ImportSpecifier(node) {
          if (node.parent.source.value !== 'zod' || node.imported.name !== 'z') return;
          context.report({
            node,
            message: 'import * as z: what of it is not used stays out of the programs.',
          });
        },
      }),
    },
  },
};
