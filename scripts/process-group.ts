import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { poll } from '../dev/poll.js';
import { projectRoot } from '../dev/root.js';
import { stopping } from '../dev/processes/stopping.js';

/** What a group gets for ending by itself: a platform stops its servers one after the other. */
const GRACE_MS = 60_000;

/**
 * Runs a Node program, with all that it starts in a process group, which is asked to end when everything is
 * to, and then ended.
 *
 * @param output the file that gets what it prints, instead of this terminal.
 * @returns the code that it ended with, once nothing of its group is left in that case.
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

/** @returns whether there is anybody in the group. */
function signal(group: number, which: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-group, which);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    return false;
  }
}
