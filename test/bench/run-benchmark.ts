import { builtProgram } from '../../dev/root.js';
import { runProgram } from '../support/run-program.js';

/** Less than the test's own timeout, so that the failure shows the output. */
const TIMEOUT_MS = 600_000;

/**
 * Runs a built benchmark as `npm run bench:<name>` does.
 * @returns the output.
 */
export function bench(
  name: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const program = builtProgram('bench', `${name}.js`);
  return runProgram([program, ...args], { MANAGE_DOCKER: 'never', ...env }, TIMEOUT_MS);
}

/** Returns the cells of the row that begins with a name. */
export function rowOf(output: string, name: string): string[] {
  const line = output.split('\n').find((each) => each.startsWith(`| ${name}`)) ?? '';
  return line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());
}
