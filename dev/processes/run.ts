import { execFile, type ExecFileOptions } from 'node:child_process';
import { promisify } from 'node:util';
import { minimalEnvironment } from './minimal-environment.js';
import { stopping } from './stopping.js';

const execute = promisify(execFile);

/**
 * Runs a program to its end and returns its output; the program is stopped when this process must stop.
 * Its environment is minimal by default.
 */
export function run(
  command: string,
  args: readonly string[],
  options: ExecFileOptions & { timeout: number },
): Promise<string> {
  return runToEnd(command, args, { ...options, signal: stopping.signal });
}

/** Runs a program that belongs to the shutdown: unlike in `run`, a stop does not end it. */
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

/** Returns the error output of a program that failed in `run`; empty if there was none. */
export function lastWords(error: unknown): string {
  const { stderr } = error as { stderr?: unknown };
  return typeof stderr === 'string' ? (stderr.trim().split('\n').at(-1) ?? '') : '';
}

/** Returns a program's exit code; undefined if it did not exit by itself. */
export function exitCodeOf(error: unknown): number | undefined {
  const { code } = error as { code?: unknown };
  return typeof code === 'number' ? code : undefined;
}
