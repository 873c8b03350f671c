import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { identify } from '../../../../dev/processes/process-identity.js';
import { Steps } from '../../../../bench/support/compare/steps.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'aps-steps-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** A program whose child runs for an hour; both process ids are in the file `pids`. */
const WITH_CHILD = `
  const { spawn } = require('node:child_process');
  const child = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 3600000)']);
  require('node:fs').writeFileSync('pids', [process.pid, child.pid].join(' '));
  setTimeout(() => {}, 3600000);`;

test('returns the output of a program', async () => {
  expect(await new Steps().run(folder, ['-e', 'console.log("built")'])).toBe('built\n');
});

test('reports the output of a program that fails', async () => {
  const failing = ['-e', 'console.log("first"); console.error("then"); process.exit(3)'];
  await expect(new Steps().run(folder, failing)).rejects.toThrow(/code 3:\nfirst\nthen/);
});

test('ends the program that runs with its child, and starts no other afterwards', async () => {
  const steps = new Steps();
  const running = steps.run(folder, ['-e', WITH_CHILD]);
  const failed = expect(running).rejects.toThrow();
  const pids = await expect
    .poll(() => readFile(path.join(folder, 'pids'), 'utf8').catch(() => ''))
    .toMatch(/^\d+ \d+$/)
    .then(() => readFile(path.join(folder, 'pids'), 'utf8'));
  await steps.end();
  await failed;
  for (const pid of pids.split(' ').map(Number)) {
    await expect.poll(() => identify(pid)).toBeUndefined();
  }
  await expect(steps.run(folder, ['-e', '0'])).rejects.toThrow('The comparison was interrupted');
});
