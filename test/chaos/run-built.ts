import { builtProgram } from '../../dev/root.js';
import { buildPrograms, runProgram } from '../support/run-program.js';

/**
 * Builds the programs if necessary and runs a chaos program.
 * @returns its output.
 */
export async function runChaos(name: string, args: readonly string[]): Promise<string> {
  await buildPrograms();
  return runProgram([builtProgram('test', 'chaos', `${name}.js`), ...args]);
}
