import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { builtProgram, projectRoot } from '../../dev/root.js';
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';

const FILES = {
  'failing.test.js': `
    test('passes', () => {});
    describe('a group', () => {
      test('fails', () => { throw new Error('the first line\\nand the second'); });
    });`,
  'hook.test.js': `
    describe('a group', () => {
      beforeAll(() => { throw new Error('nothing is prepared'); });
      test('does not run', () => {});
    });`,
  'broken.test.js': `throw new Error('cannot be read');`,
};

const FAILED = [
  'FAILED broken.test.js: cannot be read',
  'FAILED failing.test.js > a group > fails: the first line',
  'FAILED hook.test.js > a group: nothing is prepared',
];

test('reports each failure on one line with file, name and message, both at once and at the end', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'aps-failed-tests-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  for (const [name, content] of Object.entries(FILES)) {
    await writeFile(path.join(folder, name), content);
  }
  const kept = path.join(folder, 'failed.txt');
  const vitest = path.join(projectRoot, 'node_modules', 'vitest', 'vitest.mjs');
  const reporter = `--reporter=${builtProgram('scripts', 'failed-tests.js')}`;
  const child = spawn(process.execPath, [vitest, 'run', '--globals', '--root', folder, reporter], {
    cwd: folder,
    env: { PATH: process.env.PATH, FAILED_TESTS_FILE: kept },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const printed = await text(child.stdout);
  const all = await readFile(kept, 'utf8');
  expect(all).toMatch(
    /^FAILED failing.*\n {2}Error: the first line\n {2}and the second\n {2} +at .*failing/m,
  );
  for (const lines of [printed, all]) {
    const failed = lines.split('\n').filter((line) => line.startsWith('FAILED'));
    expect(failed.sort()).toEqual(FAILED);
  }
});
