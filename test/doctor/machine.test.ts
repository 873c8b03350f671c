import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { examine, type Check } from '../../src/doctor/check.js';
import {
  diskCheck,
  diskFinding,
  iptablesCheck,
  nodeCheck,
} from '../../src/doctor/machine-checks.js';

async function findingsOf(check: Check, env: Readonly<Record<string, string>> = {}) {
  return (await examine([check], env)).map(({ status, text }) => `${status}: ${text}`);
}

/** Creates a folder with a program of this name, or with none. */
async function folderWith(script?: string): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'aps-doctor-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  if (script !== undefined) {
    await writeFile(path.join(folder, 'iptables'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  }
  return folder;
}

const onLinux = { system: 'linux', folders: [], isContainer: false } as const;

test('names a Node that is too old', async () => {
  expect(await findingsOf(nodeCheck('20.18.1'))).toEqual([
    'failure: Node 20.18.1 is too old: install Node 24 (20.19 or newer works).',
  ]);
  expect(await findingsOf(nodeCheck('24.1.0'))).toEqual(['ok: Node 24.1.0 runs this program.']);
});

test('names a machine without iptables', async () => {
  const PATH = await folderWith();
  expect(await findingsOf(iptablesCheck(onLinux), { PATH })).toEqual([
    expect.stringMatching(/^failure: iptables is missing, .* install the package iptables\.$/),
  ]);
  const inside = iptablesCheck({ ...onLinux, isContainer: true });
  expect(await findingsOf(inside, { PATH })).toEqual([expect.stringMatching(/^ok: /)]);
  const inMachine = iptablesCheck({ ...onLinux, system: 'darwin' });
  expect(await findingsOf(inMachine, { PATH })).toEqual([expect.stringMatching(/^ok: /)]);
});

test('only warns of missing iptables if an API process in production has no host on its machine', async () => {
  const AGENT_VERSIONS = `2026.9.6@sha256:${'0'.repeat(64)}`;
  const AGENT_EGRESS_IMAGE = `egress@sha256:${'0'.repeat(64)}`;
  const production = { NODE_ENV: 'production', AGENT_VERSIONS, AGENT_EGRESS_IMAGE };
  const env = { PATH: await folderWith(), ...production };
  expect(await findingsOf(iptablesCheck(onLinux), env)).toEqual([
    expect.stringMatching(/^warning: iptables is missing, .*, if a worker runs here\.$/),
  ]);
  expect(await findingsOf(iptablesCheck(onLinux), { ...env, AGENT_HOST: 'local' })).toEqual([
    expect.stringMatching(/^failure: iptables is missing/),
  ]);
});

test('shows the version of iptables, and names one that does not run', async () => {
  const PATH = await folderWith('echo "iptables v1.8.9 (nf_tables)"');
  expect(await findingsOf(iptablesCheck(onLinux), { PATH })).toEqual([
    'ok: iptables v1.8.9 (nf_tables) is installed.',
  ]);
  const broken = await folderWith('exit 3');
  expect(await findingsOf(iptablesCheck(onLinux), { PATH: broken })).toEqual([
    expect.stringMatching(/^failure: .*iptables does not run/),
  ]);
});

test('warns that AGENT_EGRESS is open', async () => {
  const PATH = await folderWith('echo iptables');
  const findings = await findingsOf(iptablesCheck(onLinux), { PATH, AGENT_EGRESS: 'open' });
  expect(findings[0]).toMatch(/^warning: AGENT_EGRESS is open/);
});

test('measures the disk of DATA_DIR without creating the folder', async () => {
  const missing = path.join(await folderWith(), 'data');
  expect((await findingsOf(diskCheck, { DATA_DIR: missing }))[0]).toContain(missing);
  const statusOf = (bytes: number) => diskFinding(missing, bytes).status;
  expect([4e8, 1e9, 3e9].map(statusOf)).toEqual(['failure', 'warning', 'ok']);
});
