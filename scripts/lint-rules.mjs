/** Words that no sentence begins with: free relatives, bare prepositions and empty subjects. */
export const EMPTY_START =
  /^(What|Whatever|Who|Whom|Whoever|Whose|Where|Wherever|Whichever|Of|That|Those|Nobody|Nothing|Whether)\b/;

/** Everyday words for which the field has terms of its own. */
const VAGUE =
  /\b(tells?|told|telling|meanwhile|anew|puts? down|putting down|tak(?:e|es|en|ing) up|took up|hears?|heard|knows? of|known of|have had|has had|goes on|go on|going on|went on)\b/i;

/** Words that no declared name contains. */
const VAGUE_NAME =
  /^(?:tells?|told|telling|untold|meanwhile|anew|hears?|heard|unheard|looks?|looked|looking|eyes?|comer)$/;

/** Returns the words of a name in camel case, Pascal case or capitals, in lower case. */
const wordsOf = (name) =>
  name
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .split(/[ _]+/)
    .map((word) => word.toLowerCase());

/** Functions whose first argument is the title of a test. */
const TITLED = new Set(['it', 'test', 'describe', 'property']);

/** Properties that people read: OpenAPI texts, settings, log lines. */
const READ = new Set(['summary', 'description', 'title', 'message']);

const LOGGED = new Set(['trace', 'debug', 'info', 'warn', 'error', 'fatal']);

/** Returns the sentences of a comment's text, without its markers, its tags and their names. */
function sentencesOf(comment) {
  const text = comment.value
    .replace(/^\*+/, '')
    .split('\n')
    .map((line) => line.replace(/^\s*\*+ ?/, '').trim())
    .join('\n')
    .replace(/^@\w+(?: \{[^}]*\})?(?: [\w.[\]]+)?(?: -)? ?/gm, '\n\n');
  return text.split(/\n\s*\n/).flatMap((paragraph) => splitSentences(paragraph));
}

function splitSentences(text) {
  return text
    .replace(/\s+/g, ' ')
    .split(/(?<=[.!?])\s+(?=[A-Z`'"])/)
    .map((each) => each.trim())
    .filter((each) => each !== '');
}

/** Reports sentences that begin with an empty word or use a vague one. */
function judge(context, node, text, isSentenceCased) {
  for (const sentence of splitSentences(text)) {
    const start = isSentenceCased ? sentence : sentence[0].toUpperCase() + sentence.slice(1);
    if (EMPTY_START.test(start)) {
      context.report({ node, message: `Start with the noun or the verb: "${sentence}"` });
    }
    const vague = VAGUE.exec(sentence);
    if (vague !== null) {
      context.report({ node, message: `Use the field's word for "${vague[0]}": "${sentence}"` });
    }
  }
}

/** Returns the text of a string or template literal, with a placeholder for each expression. */
function textOf(node) {
  if (node?.type === 'Literal' && typeof node.value === 'string') return node.value;
  if (node?.type !== 'TemplateLiteral') return undefined;
  return node.quasis.map(({ value }) => value.cooked ?? value.raw).join('X');
}

/** Returns the name of the function that a call is to: `it` of `it.each(…)('…')`. */
function calleeName(callee) {
  if (callee.type === 'Identifier') return callee.name;
  if (callee.type === 'MemberExpression') return calleeName(callee.object);
  if (callee.type === 'CallExpression') return calleeName(callee.callee);
  return callee.type === 'TaggedTemplateExpression' ? calleeName(callee.tag) : undefined;
}

/** Returns the doc comment directly before a declaration. */
function docOf(context, node) {
  const last = context.sourceCode.getCommentsBefore(node).at(-1);
  return last?.type === 'Block' && last.value.startsWith('*') ? last : undefined;
}

/** A verb in the third person, possibly after an adverb. */
const VERB = /^(?:[A-Z][a-z]+ly )?[A-Za-z]+s\b/;
const NO_VERB =
  /^(This|His|Its|Always|As|Is|Was|Has|Perhaps|Less|Unless|Does|Yes|Ours|Theirs|Sometimes|Besides|Towards|Across|Us|Plus)\b/;

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
    'explicit-names': {
      create(context) {
        const checkClass = (node) => {
          if (!/(Error|Failure|Missing)$/.test(node.superClass?.name ?? '')) return;
          const stated = node.body.body.find(
            ({ key, type }) => type === 'PropertyDefinition' && key.name === 'name',
          );
          if (node.id !== null && stated?.value?.value === node.id.name) return;
          context.report({
            node,
            message: `State it: override readonly name = '${node.id?.name}'. Bundles change names of classes.`,
          });
        };
        return {
          ClassDeclaration: checkClass,
          ClassExpression: checkClass,
          MemberExpression(node) {
            const { object, property } = node;
            const isClass =
              object.type === 'MetaProperty' || object.property?.name === 'constructor';
            if (property.name !== 'name' || !isClass) return;
            context.report({ node, message: 'Bundles change names of classes: state the name.' });
          },
        };
      },
    },
    'plain-comments': {
      create: (context) => {
        const checkFunction = (node, declaration = node) => {
          const doc = docOf(context, declaration);
          if (doc === undefined) return;
          const [first] = sentencesOf(doc);
          if (first === undefined || (VERB.test(first) && !NO_VERB.test(first))) return;
          context.report({ node: doc, message: `Start with a verb ("Returns …"): "${first}"` });
        };
        return {
          Program() {
            for (const comment of context.sourceCode.getAllComments()) {
              for (const sentence of sentencesOf(comment)) judge(context, comment, sentence, true);
            }
          },
          FunctionDeclaration(node) {
            const isExported = node.parent.type.startsWith('Export');
            checkFunction(node, isExported ? node.parent : node);
          },
          MethodDefinition(node) {
            if (node.kind === 'method') checkFunction(node);
          },
        };
      },
    },
    'plain-names': {
      create: (context) => {
        const check = (node) => {
          if (node?.type !== 'Identifier' && node?.type !== 'PrivateIdentifier') return;
          const vague = wordsOf(node.name).find((word) => VAGUE_NAME.test(word));
          if (vague === undefined) return;
          context.report({ node, message: `Use the field's word for "${vague}": ${node.name}` });
        };
        const checkKey = ({ computed, key }) => {
          if (!computed) check(key);
        };
        const checkId = ({ id }) => check(id);
        const checkFunction = ({ id, params }) => {
          check(id);
          params.forEach(check);
        };
        return {
          VariableDeclarator: checkId,
          ClassDeclaration: checkId,
          TSInterfaceDeclaration: checkId,
          TSTypeAliasDeclaration: checkId,
          FunctionDeclaration: checkFunction,
          FunctionExpression: checkFunction,
          ArrowFunctionExpression: checkFunction,
          MethodDefinition: checkKey,
          PropertyDefinition: checkKey,
          TSPropertySignature: checkKey,
          TSMethodSignature: checkKey,
        };
      },
    },
    'plain-texts': {
      create: (context) => {
        const check = (node) => {
          const text = textOf(node);
          if (text !== undefined) judge(context, node, text, false);
        };
        return {
          CallExpression({ callee, arguments: given }) {
            if (TITLED.has(calleeName(callee))) check(given[0]);
            if (callee.type !== 'MemberExpression' || !LOGGED.has(callee.property.name)) return;
            if (calleeName(callee) !== 'expect') given.slice(0, 2).forEach(check);
          },
          NewExpression({ callee, arguments: given }) {
            if (callee.type === 'Identifier' && callee.name.endsWith('Error')) given.forEach(check);
          },
          Property({ key, value }) {
            if (key.type === 'Identifier' && READ.has(key.name)) check(value);
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
