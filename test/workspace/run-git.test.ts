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

/** Test options for hangs: each test fails after a minute. */
const HANGS = { timeout: 60_000 };

/** Runs git with an alias that answers with a program's output; the program is a child of git. */
const say = (program: string, options: Partial<Parameters<typeof runGit>[0]> = {}) =>
  runGit({
    args: ['-c', `alias.say=!${program}`, 'say'],
    cwd: at.path,
    env: { TEST_FOLDER: at.around },
    signal: new AbortController().signal,
    ...options,
  });

/** Expects a refusal; compares the length only, because a diff of megabytes must not be printed. */
const tooMuch = (answer: ReturnType<typeof say>) =>
  expect(answer.then(({ output }) => output.length)).rejects.toThrow(
    new GitFailedError('git printed too much'),
  );

const allEnded = () => until(async () => (await processesIn(at.around)).length === 0, 20_000);

test("git's answer may have up to 64 MB", HANGS, async () => {
  const { code, isCut, output } = await say(`head -c ${64 * MB} /dev/zero`);
  expect([code, isCut, output.length]).toEqual([0, false, 64 * MB]);
  await tooMuch(say(`head -c ${64 * MB + 1} /dev/zero`));
});

test('an endless answer is cut, and its processes are ended', HANGS, async () => {
  await tooMuch(say('yes'));
  await allEnded();
  const { isCut, output } = await say('yes', { cutAt: 1_000 });
  expect([isCut, output.toString()]).toEqual([true, 'y\n'.repeat(500)]);
  await allEnded();
});

test("the last 4,096 characters of git's error output are kept", HANGS, async () => {
  const { code, stderr: said } = await say('yes | head -c 1000000 >&2; echo done >&2; exit 3');
  expect([code, said.length, said.slice(-7)]).toEqual([3, 4_096, 'y\ndone\n']);
});

test('an aborted call ends git and the processes that git started', HANGS, async () => {
  const leaving = new AbortController();
  await at.pipe('pipe');
  const answer = say('cat pipe', { signal: leaving.signal });
  await until(async () => (await processesIn(at.around)).includes('cat pipe'), 20_000);
  leaving.abort(new Error('left'));
  await expect(answer).rejects.toThrow('left');
  await allEnded();
});
