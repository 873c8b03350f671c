import { spawn } from 'node:child_process';
import path from 'node:path';
import { projectRoot } from '../../dev/root.js';

/** Milliseconds that a program may take to end after its time is over, before it is killed. */
const GRACE_MS = 150_000;

/**
 * Runs a Node program in the project folder.
 *
 * @param timeoutMs of the program, which is then requested to end, and fails.
 * @returns its output.
 * @throws if it fails, with its output.
 */
export function runProgram(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  timeoutMs?: number,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, {
      cwd: projectRoot,
      env: { ...process.env, ...env },
    });
    let output = '';
    const collect = (chunk: Buffer) => (output += chunk.toString());
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    const fail = (how: string) => reject(new Error(`${args.join(' ')} ${how}:\n${output}`));
    let isLate = false;
    let grace: NodeJS.Timeout | undefined;
    const kill = () => {
      child.kill('SIGKILL');
      // Not `close`: programs that it started may keep its output open.
      fail(`was killed, because it neither ended within ${timeoutMs} ms nor when requested`);
    };
    const end = () => {
      isLate = true;
      child.kill();
      grace = setTimeout(kill, GRACE_MS);
    };
    const timer = timeoutMs === undefined ? undefined : setTimeout(end, timeoutMs);
    child.once('error', reject);
    child.once('close', (code) => {
      clearTimeout(timer);
      clearTimeout(grace);
      if (isLate) fail(`did not end within ${timeoutMs} ms`);
      else if (code === 0) resolve(output);
      else fail(`exited with ${code}`);
    });
  });
}

/** Builds the programs that tests run, unless they are built already. */
export const buildPrograms = () => runProgram([path.join('scripts', 'build.mjs'), '--dev']);
