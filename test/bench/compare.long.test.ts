import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { beforeAll, expect, test } from 'vitest';
import { builtProgram, projectRoot } from '../../dev/root.js';
import { buildPrograms } from '../support/run-program.js';
import { bench, rowOf } from './run-benchmark.js';

beforeAll(buildPrograms);

test('compares the present state with a commit and removes the worktree of the commit', async () => {
  const before = worktrees();
  const sizes = ['--rounds=1', '--seconds=0.5', '--warmup=0.5'];
  const output = await bench('compare', ['HEAD', 'http', ...sizes]);
  for (const figure of ["server's CPU, µs each", 'a second', 'p99 ms']) {
    const [, older, now, ratio] = rowOf(output, `/api/agents: ${figure}`);
    for (const value of [older, now, ratio]) expect(Number(value)).toBeGreaterThan(0);
  }
  expect(worktrees()).toBe(before);
});

test('removes the worktree if it is interrupted while the commit is built', async () => {
  const before = worktrees();
  const comparing = spawn(process.execPath, [builtProgram('bench', 'compare.js'), 'HEAD'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let output = '';
  comparing.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await expect.poll(() => output).toMatch(/^Building /m);
  expect(worktrees()).not.toBe(before);
  comparing.kill('SIGINT');
  expect(await once(comparing, 'exit')).toEqual([1, null]);
  expect(worktrees()).toBe(before);
});

test('reports a commit that does not exist', async () => {
  await expect(bench('compare', ['no-such-commit'])).rejects.toThrow(
    'The repository has no commit no-such-commit: check its name.',
  );
});

const worktrees = () =>
  execFileSync('git', ['worktree', 'list'], { cwd: projectRoot, encoding: 'utf8' });
