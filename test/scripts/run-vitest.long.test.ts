import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { runVitest } from '../../scripts/run-vitest.js';

const PASSES = `test('passes', () => {});`;
const FAILS = `test('passes beside it', () => {});
  test('fails', () => { throw new Error('wrong'); });`;
/** A test file that fails in its first run and passes in its second. */
const FAILS_ONCE = `
  import { existsSync, writeFileSync } from 'node:fs';
  const tried = new URL('tried', import.meta.url);
  describe('a group', () => {
    beforeAll(() => {
      if (existsSync(tried)) return;
      writeFileSync(tried, '');
      throw new Error('not yet');
    });
    test('runs', () => {});
  });`;

let folder = '';

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'aps-run-vitest-'));
  const made = folder;
  onTestFinished(() => rm(made, { recursive: true }));
  vi.stubEnv('CI', 'true');
  onTestFinished(() => void vi.unstubAllEnvs());
});

async function run(files: Readonly<Record<string, string>>) {
  for (const [name, content] of Object.entries(files)) {
    await writeFile(path.join(folder, name), content);
  }
  return runVitest(['--globals', `--root=${folder}`], folder, {});
}

describe('repeated test files in CI', () => {
  test('in CI, reports a test that passes in a second run of its file as flaky and not as failed', async () => {
    const tested = await run({ 'once.test.js': FAILS_ONCE, 'well.test.js': PASSES });
    expect(tested).toEqual({
      code: 0,
      tests: { passed: 2, failed: 0, skipped: [] },
      failed: [],
      flaky: ['FAILED once.test.js > a group: not yet'],
    });
  });

  test('in CI, reports a test that fails twice as failed, next to a flaky test', async () => {
    const tested = await run({ 'once.test.js': FAILS_ONCE, 'wrong.test.js': FAILS });
    expect(tested).toMatchObject({
      code: 1,
      tests: { passed: 2, failed: 1, skipped: [] },
      failed: ['FAILED wrong.test.js > fails: wrong'],
    });
  });

  test('in CI, repeats neither three failed files nor an error outside any file', async () => {
    const names = ['a', 'b'].map((name) => [`${name}.test.js`, FAILS]);
    const many = await run({ ...Object.fromEntries(names), 'once.test.js': FAILS_ONCE });
    expect(many.code).toBe(1);
    expect(many.failed).toHaveLength(3);
    const unhandled = `test('leaves a promise', () => void Promise.reject(new Error('lost')));`;
    for (const [name] of names) await rm(path.join(folder, String(name)));
    const lost = await run({ 'unhandled.test.js': unhandled });
    expect(lost).toMatchObject({ code: 1, flaky: [] });
  });
});

test('repeats no failed file outside CI', async () => {
  vi.stubEnv('CI', undefined);
  const tested = await run({ 'once.test.js': FAILS_ONCE });
  expect(tested).toMatchObject({ code: 1, failed: ['FAILED once.test.js > a group: not yet'] });
});
