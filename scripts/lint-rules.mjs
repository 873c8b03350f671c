/** This project's own rules for the linter. */
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
            message:
              'Write import * as z: the bundler then drops unused parts of it from the programs.',
          });
        },
      }),
    },
  },
};
