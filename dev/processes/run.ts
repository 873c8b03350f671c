import { execFile, type ExecFileOptions } from 'node:child_process';
import { promisify } from 'node:util';
import { minimalEnvironment } from './minimal-environment.js';
import { stopping } from './stopping.js';

const execute = promisify(execFile);

/**
 * Runs a program to its end and returns what it wrote; it ends with us when we are to stop. Its
 * environment is minimal when none is given.
 */
export function run(
  command: string,
  args: readonly string[],
  options: ExecFileOptions & { timeout: number },
): Promise<string> {
  return runToEnd(command, args, { ...options, signal: stopping.signal });
}

/** The same for what belongs to stopping: it goes on when we are to stop. */
export async function runToEnd(
  command: string,
  args: readonly string[],
  options: ExecFileOptions & { timeout: number },
): Promise<string> {
  const { stdout } = await execute(command, args, {
    maxBuffer: 50_000_000,
    env: minimalEnvironment(),
    ...options,
    encoding: 'utf8',
  });
  return stdout;
}

/** What a program that `run` ran told about its failure; empty when it said nothing. */
export function lastWords(error: unknown): string {
  const { stderr } = error as { stderr?: unknown };
  return typeof stderr === 'string' ? (stderr.trim().split('\n').at(-1) ?? '') : '';
}

/** The code a program ended with; undefined when it did not run to its end by itself. */
export function exitCodeOf(error: unknown): number | undefined {
  const { code } = error as { code?: unknown };
  return typeof code === 'number' ? code : undefined;
}
