import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { analyse } from 'scslre';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { projectRoot } from '../dev/root.js';

const PRODUCT = ['activities', 'api', 'src', 'temporal', 'worker', 'workflows'];

/** Lists the regular expressions of a file as written there. */
function regularExpressionsIn(file: string): string[] {
  const text = readFileSync(path.join(projectRoot, file), 'utf8');
  const found: string[] = [];
  const visit = (node: ts.Node) => {
    if (ts.isRegularExpressionLiteral(node)) found.push(node.text);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.Latest));
  return found;
}

function backtracks(expression: string): boolean {
  const end = expression.lastIndexOf('/');
  const parts = { source: expression.slice(1, end), flags: expression.slice(end + 1) };
  return analyse(parts).reports.length > 0;
}

test('finds an expression whose time grows faster than its text', () => {
  expect(backtracks(String.raw`/(a+)+$/`)).toBe(true);
  expect(backtracks(String.raw`/\s+$/`)).toBe(true);
  expect(backtracks(String.raw`/x\s*=\s*/`)).toBe(false);
});

test.each(PRODUCT)('finds no backtracking regular expression in %s', { tags: 'attack' }, (room) => {
  const files = readdirSync(path.join(projectRoot, room), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => path.join(room, name));
  const all = files.flatMap((file) => regularExpressionsIn(file).map((each) => [file, each]));
  expect(all.filter(([, expression = '']) => backtracks(expression))).toEqual([]);
});
