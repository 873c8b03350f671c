// Lines and files of product, workshop and tests, how long files and functions are, and how many
// files take part in circles of imports, those of types alone included:
//
//     npm run shape [folder]
//
// The figures of docs/architecture.md are these. Plain JavaScript, so that it measures any state.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import ts from 'typescript';

const root = path.resolve(process.argv[2] ?? '.');
const PARTS = {
  product: ['src', 'api', 'workflows', 'activities', 'temporal', 'worker'],
  workshop: ['dev', 'scripts', 'bench'],
  tests: ['test'],
};

const files = new Map(); // path from the root -> { part, lines, functions, imports }
for (const [part, rooms] of Object.entries(PARTS)) {
  for (const room of rooms)
    for (const file of sourcesIn(room)) files.set(file, measure(file, part));
}

const rows = [...Object.keys(PARTS), 'all'].map((part) => {
  const of = [...files.values()].filter((each) => part === 'all' || each.part === part);
  const lines = of.map((each) => each.lines);
  return {
    part,
    files: of.length,
    lines: lines.reduce((sum, each) => sum + each, 0),
    ...spread('file', lines),
    ...spread(
      'function',
      of.flatMap((each) => each.functions),
    ),
  };
});
console.table(rows);

const knots = knotsOf(files);
const tangled = knots.flat().length;
console.log(`${knots.length} knots of imports, of ${tangled} files:`);
for (const knot of knots) console.log(`  ${knot.sort().join(', ')}`);

function sourcesIn(room) {
  try {
    return readdirSync(path.join(root, room), { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.(ts|mjs)$/.test(file))
      .map((file) => path.join(room, file));
  } catch (error) {
    if (error.code === 'ENOENT') return []; // a room that this state has not
    throw error;
  }
}

function measure(file, part) {
  const text = readFileSync(path.join(root, file), 'utf8');
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const lineOf = (position) => source.getLineAndCharacterOfPosition(position).line;
  const functions = [];
  const visit = (node) => {
    // Blocks of tests are lists of tests, whatever their length.
    if (ts.isFunctionLike(node) && node.body !== undefined && !isBlockOfTests(node)) {
      functions.push(lineOf(node.end) - lineOf(node.getStart(source)) + 1);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  const imports = source.statements
    .filter((each) => ts.isImportDeclaration(each) || ts.isExportDeclaration(each))
    .map((each) => each.moduleSpecifier?.text ?? '')
    .filter((specifier) => specifier.startsWith('.'))
    .map((specifier) => path.join(path.dirname(file), specifier).replace(/\.js$/, '.ts'));
  return { part, lines: text.trimEnd().split('\n').length, functions, imports };
}

function isBlockOfTests({ parent }) {
  return ts.isCallExpression(parent) && /^describe\b/.test(parent.expression.getText());
}

function spread(of, lengths) {
  const sorted = lengths.toSorted((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  return { [`${of} p50`]: at(0.5), [`${of} p90`]: at(0.9), [`${of} max`]: sorted.at(-1) };
}

/** Files of which each imports every other by way of others (Tarjan). */
function knotsOf(graph) {
  const found = [];
  const stack = [];
  const seen = new Map(); // file -> { index, low, onStack }
  const enter = (file) => {
    const state = { index: seen.size, low: seen.size, onStack: true };
    seen.set(file, state);
    stack.push(file);
    for (const next of graph.get(file)?.imports ?? []) {
      if (!graph.has(next)) continue;
      const other = seen.get(next) ?? enter(next);
      if (other.onStack) state.low = Math.min(state.low, other.low);
    }
    if (state.low === state.index) {
      const knot = stack.splice(stack.indexOf(file));
      for (const each of knot) seen.get(each).onStack = false;
      if (knot.length > 1) found.push(knot);
    }
    return state;
  };
  for (const file of graph.keys()) if (!seen.has(file)) enter(file);
  return found;
}
