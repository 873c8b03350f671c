import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { exitCodeOf } from './run.js';

const execute = promisify(execFile); // Not `run`: processes are inspected during the shutdown too.

/** A process that this launcher started: a pid could by now be another program's. */
export interface ProcessIdentity {
  readonly pid: number;
  /** The time of its start, in the operating system's format. */
  readonly startedAt: string;
}

/** Returns the process that runs under this pid now; undefined if none does. */
export async function identify(pid: number): Promise<ProcessIdentity | undefined> {
  const startedAt = process.platform === 'linux' ? await bootTicks(pid) : await startTime(pid);
  return startedAt === undefined ? undefined : { pid, startedAt };
}

/** Reports whether the recorded process still runs. */
export async function isAlive(recorded: ProcessIdentity): Promise<boolean> {
  return (await identify(recorded.pid))?.startedAt === recorded.startedAt;
}

async function bootTicks(pid: number): Promise<string | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    // The name in parentheses may contain spaces, so fields are counted from its end: state is 0,
    // starttime 19.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined;
    const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8');
    return `${boot.trim()} ${fields[19]}`;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return undefined;
    throw error;
  }
}

async function startTime(pid: number): Promise<string | undefined> {
  try {
    const args = ['-o', 'lstart=', '-p', String(pid)];
    const { stdout } = await execute('ps', args, { timeout: 5_000 });
    return stdout.trim() || undefined;
  } catch (error) {
    if (exitCodeOf(error) === 1) return undefined; // ps found no such process.
    throw error;
  }
}
