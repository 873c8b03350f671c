// @module-tag attack
import type FileSystem from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { projectRoot } from '../../dev/root.js';
import { TooComplexError } from '../../src/pages/page-error.js';
import { ReadingProcesses } from '../../src/pages/reading-processes.js';

/** Milliseconds of processor time reported for every process. */
let spentMs = 0;
vi.mock('node:fs', async (original) => {
  const real = await original<typeof FileSystem>();
  const readFileSync = (...given: Parameters<typeof real.readFileSync>) =>
    /^\/proc\/\d+\/schedstat$/.test(String(given[0]))
      ? `${spentMs * 1e6} 0 0\n`
      : real.readFileSync(...given);
  return { ...real, readFileSync };
});

const program = pathToFileURL(path.join(projectRoot, 'test', 'support', 'reported-reader.mjs'));

let processes: ReadingProcesses;
beforeEach(() => {
  // Default limits.
  processes = new ReadingProcesses(program);
});
afterEach(async () => {
  vi.useRealTimers();
  await processes.close();
});

const reading = (owner: string, text: string, signal = new AbortController().signal) =>
  processes.read(
    { bytes: Buffer.from(text), contentType: 'text/html', url: 'http://page.test/' },
    'read',
    { owner, signal },
  );

/** Returns the command lines of the reading processes started here. */
async function readers(): Promise<string[]> {
  const tasks = await readdir('/proc/self/task');
  const children = tasks.map((task) => readFile(`/proc/self/task/${task}/children`, 'latin1'));
  const pids = (await Promise.all(children)).join(' ').split(/\s+/).filter(Boolean);
  const lines = pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => ''));
  return (await Promise.all(lines)).filter((line) => line.includes('reported-reader'));
}

test('reads two pages at a time, each in 512 MB of memory', { timeout: 60_000 }, async () => {
  const leaving = new AbortController();
  const asked = ['a', 'b', 'c', 'd'].map((owner) => reading(owner, 'nothing', leaving.signal));
  const all = Promise.allSettled(asked);
  await setImmediate();
  const lines = await readers();
  leaving.abort(new Error('left'));
  expect((await all).map(({ status }) => status)).toEqual(Array(4).fill('rejected'));
  expect(lines).toHaveLength(2);
  for (const line of lines) expect(line).toContain('--max-old-space-size=512\0');
});

test.each([
  ['may take 5 s of a processor', 5_000, new Error('left')],
  ['is given up after more than 5 s of a processor', 5_001, new TooComplexError()],
])('a page %s', { timeout: 60_000 }, async (_, ms, expected) => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  spentMs = 70_000; // spent on earlier pages
  const leaving = new AbortController();
  const outcome = reading('a', 'nothing', leaving.signal).catch((error: unknown) => error);
  await setImmediate();
  spentMs += ms;
  vi.advanceTimersByTime(1_000);
  // Aborting has no effect once the page is given up.
  leaving.abort(new Error('left'));
  expect(await outcome).toEqual(expected);
});
