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
  },
};
