import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { poll } from '../../dev/poll.js';

const PART_TIMEOUT_MS = 90_000;

/** Stops a process, with all that it has started, where they are. @returns what has them go on. */
export async function stopWhereItIs(pid: number): Promise<() => void> {
  // It may have ended since it was looked up.
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  const pids = [pid, ...children.split(' ').map(Number).filter(Boolean)];
  for (const each of pids) signal(each, 'SIGSTOP');
  return () => {
    for (const each of pids) signal(each, 'SIGCONT');
  };
}

/** Has a part stand still for a while. */
export async function pauseProcess(
  name: string,
  living: () => Promise<number | undefined>,
  lastsMs: number,
): Promise<void> {
  // It may just be coming back from a kill.
  const pid = await poll(living, { timeoutMs: PART_TIMEOUT_MS });
  if (pid === undefined) throw new Error(`${name} does not run`);
  const goOn = await stopWhereItIs(pid);
  await delay(lastsMs);
  goOn();
}

/** It may have ended meanwhile. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
