import { readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { beforeAll, expect, test } from 'vitest';
import { hasApt, installPackages } from '../../dev/apt.js';
import { canRehearse, missingPackages } from '../../dev/rehearsal/machine.js';
import { runProgram } from '../support/run-program.js';

/** The loader of Compose and OpenClaw's files may have to be made first. */
const WHOLE_MS = 50 * 60_000;
const INSTALL_MS = 10 * 60_000;

const PLACE = 'aps-rehearsal-';

beforeAll(async () => {
  if (!canRehearse || !(await hasApt())) return;
  const missing = await missingPackages();
  if (missing.length > 0) await installPackages(missing);
}, INSTALL_MS);

/** Returns the command lines of processes of rehearsals. */
async function processes(): Promise<readonly string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(
    pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')),
  );
  return lines.filter((line) => line.includes(PLACE));
}

test.runIf(canRehearse)(
  'the services of docker-compose.yml run in their order, take the tour through the proxy, and end',
  async () => {
    const output = await runProgram(['scripts/rehearse.mjs', '--check']);
    expect(output).toContain("The agent's own address answers 303 through the proxy.");
    const [, ran = '', checked = ''] =
      /\nRan, [^\n]+\n([^]+)\nOnly checked [^\n]+\n([^]+)/.exec(output) ?? [];
    const named = (text: string) => text.split('\n').map((line) => line.trim().split(':', 1)[0]);
    expect(named(ran)).toEqual(
      expect.arrayContaining([
        ...['postgres', 'postgres-roles', 'redis', 'temporal', 'temporal-namespace', 'migrate'],
        ...['api', 'worker', 'host', 'agents-ai', 'payments', 'summarizer', 'caddy'],
      ]),
    );
    expect(named(checked)).toContain('temporal-schema');
    expect(await processes()).toEqual([]);
    expect((await readdir(tmpdir())).filter((name) => name.startsWith(PLACE))).toEqual([]);
  },
  WHOLE_MS,
);
