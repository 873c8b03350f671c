import { spawn } from 'node:child_process';
import path from 'node:path';
import { expect, test } from 'vitest';
import { findProgram } from '../../dev/processes/find-program.js';
import { builtProgram, projectRoot } from '../../dev/root.js';

/** It runs in a network of its own, on an engine of its own that is killed. */
const possible =
  process.platform === 'linux' &&
  process.getuid?.() === 0 &&
  (await Promise.all(['dockerd', 'ip', 'unshare'].map(findProgram))).every(Boolean);

/** As many rounds as there are kinds of kill, of operations that are soon over. */
const ROUNDS = ['--seed=65199', '--rounds=7'];

test.runIf(possible)(
  'agents are as desired, and nothing is left or lost, whatever is killed during an operation',
  async () => {
    await run([path.join('scripts', 'build.mjs'), '--dev']);
    const output = await run([builtProgram('test', 'chaos', 'chaos-agents.js'), ...ROUNDS]);
    expect(output).toContain(
      '7 rounds; kills: worker 1, api 1, temporal 1, postgres 1, dockerd 1, container 1, gateway 1; nothing to kill 0; wrong 0, left over 0',
    );
  },
  240_000,
);

/** @returns what it prints. */
function run(args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: projectRoot });
    let output = '';
    const collect = (chunk: Buffer) => (output += chunk.toString());
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve(output);
      else reject(new Error(`${args.join(' ')} ended with ${code}:\n${output}`));
    });
  });
}
