import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { projectRoot } from '../../dev/root.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'aps-lint-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Lints a text with one rule and returns the number of reports. */
async function reportsOf(rule: string, text: string): Promise<number> {
  const config = {
    jsPlugins: [path.join(projectRoot, 'scripts', 'lint-rules.mjs')],
    categories: { correctness: 'off' },
    rules: { [`own/${rule}`]: 'error' },
  };
  await writeFile(path.join(folder, 'config.json'), JSON.stringify(config));
  await writeFile(path.join(folder, 'a.ts'), text);
  const linter = path.join(projectRoot, 'node_modules', 'oxlint', 'bin', 'oxlint');
  const args = [linter, '-c', path.join(folder, 'config.json'), '-f', 'json', folder];
  const stdout = await promisify(execFile)(process.execPath, args, { cwd: folder }).then(
    (ended) => ended.stdout,
    (error: { stdout: string }) => error.stdout,
  );
  return (JSON.parse(stdout) as { diagnostics: unknown[] }).diagnostics.length;
}

test.each([
  [
    'accepts',
    0,
    'an error with its name',
    "class AError extends Error { override readonly name = 'AError'; }",
  ],
  ['reports', 1, 'an error without a name', 'class AError extends Error {}'],
  [
    'reports',
    1,
    "an error with its parent's name",
    "class BError extends AError { override readonly name = 'AError'; }",
  ],
  ['reports', 1, 'an error without a class name', 'const made = class extends Error {};'],
  ['reports', 1, 'the name of a constructor', 'const name = error.constructor.name;'],
  ['reports', 1, 'the name of the created class', 'class A { is = new.target.name; }'],
])('explicit-names %s, in %i places, %s', async (_, count, __, text) => {
  expect(await reportsOf('explicit-names', text)).toBe(count);
});
