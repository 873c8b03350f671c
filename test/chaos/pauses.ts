import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { poll } from '../../dev/poll.js';

const PART_TIMEOUT_MS = 90_000;

/**
 * Pauses a process and its children.
 * @returns a function that resumes them.
 */
export async function stopWhereItIs(pid: number): Promise<() => void> {
  // The process may have ended since the lookup.
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  const pids = [pid, ...children.split(' ').map(Number).filter(Boolean)];
  for (const each of pids) signal(each, 'SIGSTOP');
  return () => {
    for (const each of pids) signal(each, 'SIGCONT');
  };
}

/** Pauses a part for a while. */
export async function pauseProcess(
  name: string,
  living: () => Promise<number | undefined>,
  lastsMs: number,
): Promise<void> {
  // The process may still be restarting after a kill.
  const pid = await poll(living, { timeoutMs: PART_TIMEOUT_MS });
  if (pid === undefined) throw new Error(`${name} is not running`);
  const goOn = await stopWhereItIs(pid);
  await delay(lastsMs);
  goOn();
}

/** Sends a signal to a process, which may already have ended. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
