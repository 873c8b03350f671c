import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { poll } from '../dev/poll.js';
import { projectRoot } from '../dev/root.js';
import { stopping } from '../dev/processes/stopping.js';

/** Milliseconds that a group has to end by itself: a platform stops its servers one after the other. */
const GRACE_MS = 60_000;

/**
 * Runs a Node program and its children in a process group; on shutdown the group is requested to end, and
 * then killed.
 *
 * @param output the file for its output, instead of this terminal.
 * @returns the exit code; on shutdown only once the group is empty.
 */
export async function runGroup(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  output?: string,
): Promise<number> {
  stopping.signal.throwIfAborted();
  const printed = output === undefined ? undefined : openSync(output, 'w', 0o600);
  const child = spawn(process.execPath, args, {
    cwd: projectRoot,
    env,
    detached: true,
    stdio: ['ignore', printed ?? 'inherit', printed ?? 'inherit'],
  });
  if (printed !== undefined) closeSync(printed);
  const { pid } = child;
  const end = () => pid !== undefined && signal(pid, 'SIGTERM');
  stopping.signal.addEventListener('abort', end);
  const [code] = (await once(child, 'close')) as [number | null];
  stopping.signal.removeEventListener('abort', end);
  if (pid !== undefined && stopping.signal.aborted) {
    const isGone = () => Promise.resolve(signal(pid, 0) ? undefined : true);
    await poll(isGone, { timeoutMs: GRACE_MS, everyMs: 100 });
    signal(pid, 'SIGKILL');
  }
  return code ?? 1;
}

/** Sends a signal, and reports whether any process is in the group. */
function signal(group: number, which: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-group, which);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    return false;
  }
}
