import { builtProgram } from '../../dev/root.js';
import { buildPrograms, runProgram } from '../support/run-program.js';

/** Builds what is not built yet, and runs a program of chaos. @returns what it prints. */
export async function runChaos(name: string, args: readonly string[]): Promise<string> {
  await buildPrograms();
  return runProgram([builtProgram('test', 'chaos', `${name}.js`), ...args]);
}
