import path from 'node:path';
import { findProgram } from '../../dev/processes/find-program.js';
import { builtProgram } from '../../dev/root.js';
import { runProgram } from '../support/run-program.js';

/** Chaos runs in networks of its own, on engines of its own that are killed. */
export const chaosIsPossible =
  process.platform === 'linux' &&
  process.getuid?.() === 0 &&
  (await Promise.all(['dockerd', 'ip', 'unshare'].map(findProgram))).every(Boolean);

/** Builds what is not built yet, and runs a program of chaos. @returns what it prints. */
export async function runChaos(name: string, args: readonly string[]): Promise<string> {
  await runProgram([path.join('scripts', 'build.mjs'), '--dev']);
  return runProgram([builtProgram('test', 'chaos', `${name}.js`), ...args]);
}
