// Prints lines and files of product, workshop and tests, the lengths of files and functions, and the
// circles of imports between files and between folders of `src/` (imports of types included):
//
//     npm run shape [folder]
//
// The source of the figures in docs/architecture.md. Plain JavaScript, so that it measures any state.
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

reportCircles('files', files);
const folders = foldersOf('src');
const arrows = [...folders.values()].reduce((sum, { imports }) => sum + imports.length, 0);
console.log(`${folders.size} folders of src with ${arrows} arrows between them`);
reportCircles('folders of src', folders);

function reportCircles(things, graph) {
  const circles = circlesOf(graph);
  console.log(`${circles.length} circles between ${things}, of ${circles.flat().length}:`);
  for (const circle of circles) console.log(`  ${circle.sort().join(', ')}`);
}

/** Returns the folders below a room, each with the folders that its files import. */
function foldersOf(room) {
  const graph = new Map();
  const below = (folder) => folder.startsWith(`${room}/`);
  for (const [file, { imports }] of files) {
    const folder = path.dirname(file);
    if (!below(folder)) continue;
    const others = imports.map((each) => path.dirname(each));
    const known = graph.get(folder)?.imports ?? [];
    const found = [...known, ...others.filter((each) => below(each) && each !== folder)];
    graph.set(folder, { imports: [...new Set(found)] });
  }
  return graph;
}

function sourcesIn(room) {
  try {
    return readdirSync(path.join(root, room), { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.(ts|mjs)$/.test(file))
      .map((file) => path.join(room, file));
  } catch (error) {
    if (error.code === 'ENOENT') return []; // This commit has no such folder.
    throw error;
  }
}

function measure(file, part) {
  const text = readFileSync(path.join(root, file), 'utf8');
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const lineOf = (position) => source.getLineAndCharacterOfPosition(position).line;
  const functions = [];
  const visit = (node) => {
    // Test blocks are lists of tests, so their length does not count.
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

/** Returns the groups of which each member imports every other by way of others (Tarjan). */
function circlesOf(graph) {
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
      const circle = stack.splice(stack.indexOf(file));
      for (const each of circle) seen.get(each).onStack = false;
      if (circle.length > 1) found.push(circle);
    }
    return state;
  };
  for (const file of graph.keys()) if (!seen.has(file)) enter(file);
  return found;
}
