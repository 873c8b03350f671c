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
    'composition-root': {
      create(context) {
        const domain = new Set();
        return {
          ImportDeclaration({ source, specifiers }) {
            if (!/^(\.\.\/)+src\//.test(source.value)) return;
            for (const { local } of specifiers) domain.add(local.name);
          },
          NewExpression({ callee }) {
            if (!domain.has(callee.name) || callee.name.endsWith('Error')) return;
            context.report({
              node: callee,
              message: 'Make it in src/services.ts: endpoints get domain objects by dependencies.',
            });
          },
        };
      },
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
