import { spawn } from 'node:child_process';
import { chmod, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { projectRoot } from '../../dev/root.js';
import { until } from '../support/until.js';

/** A test file that starts a PostgreSQL, a Temporal and an API of its own. */
const TESTS = 'test/accounts/accounts/theft.long.test.ts';
/** Milliseconds until `npm test` has built the product and the file has started its servers. */
const STARTED_MS = 120_000;

test('tests ended by SIGTERM leave no process and no file behind', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'aps-ended-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await chmod(folder, 0o711); // as root, PostgreSQL runs as another user that must traverse the folder
  const npmTest = spawn(
    process.execPath,
    [path.join(projectRoot, 'scripts', 'test.mjs'), '--long', TESTS],
    { cwd: projectRoot, env: { ...process.env, TMPDIR: folder }, stdio: 'ignore' },
  );
  onTestFinished(() => void npmTest.kill('SIGKILL'));
  const ended = new Promise((resolve) => npmTest.once('close', resolve));
  await until(async () => {
    const commands = await commandsOf(folder);
    return commands.some((each) => each.includes('temporal.db')) && commands.some(isApi);
  }, STARTED_MS);

  npmTest.kill('SIGTERM');
  await ended;

  expect(await commandsOf(folder)).toEqual([]);
  expect(await readdir(folder)).toEqual([]);
});

const isApi = (command: string): boolean => /api.main\.js/.test(command);

/** Lists the command lines of processes whose environment contains the folder. */
async function commandsOf(folder: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const commands = await Promise.all(
    pids.map(async (pid) => {
      try {
        const environment = await readFile(`/proc/${pid}/environ`, 'utf8');
        if (!environment.includes(folder)) return [];
        return [(await readFile(`/proc/${pid}/cmdline`, 'utf8')).replaceAll('\0', ' ')];
      } catch {
        return []; // ended already, or of another user
      }
    }),
  );
  return commands.flat();
}
