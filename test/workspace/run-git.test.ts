// @module-tag attack
import { afterEach, beforeEach, expect, test } from 'vitest';
import { GitFailedError, runGit } from '../../src/workspace/git/run-git.js';
import { until } from '../support/until.js';
import { processesIn, testWorkspace, type TestWorkspace } from './support.js';

let at: TestWorkspace;
beforeEach(async () => {
  at = await testWorkspace();
});
afterEach(() => at.close());

const MB = 1024 ** 2;

/** What hangs is told within a minute, on whatever machine. */
const HANGS = { timeout: 60_000 };

/** A git that answers what a program says, which is a process of its own beside it. */
const say = (program: string, options: Partial<Parameters<typeof runGit>[0]> = {}) =>
  runGit({
    args: ['-c', `alias.say=!${program}`, 'say'],
    cwd: at.path,
    env: { TEST_FOLDER: at.around },
    signal: new AbortController().signal,
    ...options,
  });

/** It is refused; an answer is told by its length, because a difference of megabytes is not written out. */
const tooMuch = (answer: ReturnType<typeof say>) =>
  expect(answer.then(({ output }) => output.length)).rejects.toThrow(
    new GitFailedError('git printed too much'),
  );

const allEnded = () => until(async () => (await processesIn(at.around)).length === 0, 20_000);

test('git answers 64 MB at most', HANGS, async () => {
  const { code, isCut, output } = await say(`head -c ${64 * MB} /dev/zero`);
  expect([code, isCut, output.length]).toEqual([0, false, 64 * MB]);
  await tooMuch(say(`head -c ${64 * MB + 1} /dev/zero`));
});

test('an answer without an end is ended, with all that gives it', HANGS, async () => {
  await tooMuch(say('yes'));
  await allEnded();
  const { isCut, output } = await say('yes', { cutAt: 1_000 });
  expect([isCut, output.toString()]).toEqual([true, 'y\n'.repeat(500)]);
  await allEnded();
});

test('what git says of a failure is kept to its end', HANGS, async () => {
  const { code, stderr: said } = await say('yes | head -c 1000000 >&2; echo done >&2; exit 3');
  expect([code, said.length, said.slice(-7)]).toEqual([3, 4_096, 'y\ndone\n']);
});

test('who leaves has git ended, and what git has started', HANGS, async () => {
  const leaving = new AbortController();
  await at.pipe('pipe');
  const answer = say('cat pipe', { signal: leaving.signal });
  await until(async () => (await processesIn(at.around)).includes('cat pipe'), 20_000);
  leaving.abort(new Error('left'));
  await expect(answer).rejects.toThrow('left');
  await allEnded();
});
