import { spawn } from 'node:child_process';
import path from 'node:path';
import { findProgram } from '../../dev/processes/find-program.js';
import { builtProgram, projectRoot } from '../../dev/root.js';

/** Chaos runs in networks of its own, on engines of its own that are killed. */
export const chaosIsPossible =
  process.platform === 'linux' &&
  process.getuid?.() === 0 &&
  (await Promise.all(['dockerd', 'ip', 'unshare'].map(findProgram))).every(Boolean);

/** Builds what is not built yet, and runs a program of chaos. @returns what it prints. */
export async function runChaos(name: string, args: readonly string[]): Promise<string> {
  await run([path.join('scripts', 'build.mjs'), '--dev']);
  return run([builtProgram('test', 'chaos', `${name}.js`), ...args]);
}

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
