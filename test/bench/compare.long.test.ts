import { execFileSync } from 'node:child_process';
import { beforeAll, expect, test } from 'vitest';
import { projectRoot } from '../../dev/root.js';
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

test('reports a commit that does not exist', async () => {
  await expect(bench('compare', ['no-such-commit'])).rejects.toThrow(
    'The repository has no commit no-such-commit: check its name.',
  );
});

const worktrees = () =>
  execFileSync('git', ['worktree', 'list'], { cwd: projectRoot, encoding: 'utf8' });
