import { readFileSync } from 'node:fs';
import { BadRequestError, ConflictError } from '../../lib/errors.js';
import { createFile, type Folder } from '../files/folder.js';

const MAX_MARK_BYTES = 200;
const MARK = /^agent-platform (\d+) (\d+)\n$/;

/** Returns the start time of a process in ticks since boot, or undefined if it does not exist. */
function startOf(pid: number | 'self'): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the process name, which may contain any character.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return undefined; // no such process
  }
}

/** Locks of this process by place; in sandboxes, a lock's process id and start time may repeat. */
const HELD = new Set<string>();

const placeOf = async (folder: Folder, lock: string): Promise<string> => {
  const { dev, ino } = await folder.self();
  return `${dev} ${ino} ${lock}`;
};

/**
 * Runs `work` under git's own lock of a file, which names its owner: a stale lock of this platform differs from
 * a running program's. @throws ConflictError while another program holds the lock
 */
export async function withLock<T>(
  root: Folder,
  { folder, name }: { readonly folder: Folder; readonly name: string },
  work: () => Promise<T>,
): Promise<T> {
  const lock = `${name}.lock`;
  const place = await placeOf(folder, lock);
  await clearOwnLock(folder, name);
  if (HELD.has(place)) throw lockedBy(lock);
  HELD.add(place);
  try {
    const mark = Buffer.from(`agent-platform ${process.pid} ${startOf('self')}\n`);
    // Created whole with its mark: an unmarked lock left by a kill would count as another program's.
    await createFile(root, { folder, name: lock }, mark).catch((error: unknown) => {
      throw error instanceof ConflictError ? lockedBy(lock) : error;
    });
    try {
      return await work();
    } finally {
      await folder.remove(lock);
    }
  } finally {
    HELD.delete(place);
  }
}

const lockedBy = (lock: string) =>
  new ConflictError(
    'Another program is at work in the repository: retry when its lock is gone',
    'REPOSITORY_BUSY',
    {
      lock,
    },
  );

/** Removes a stale lock of a killed process of this platform. */
export async function clearOwnLock(folder: Folder, name: string): Promise<void> {
  const lock = `${name}.lock`;
  try {
    const there = await folder.readIfThere(lock, MAX_MARK_BYTES);
    const [, pid, start] = MARK.exec(there?.bytes.toString() ?? '') ?? [];
    if (pid === undefined) return;
    const isAtWork =
      Number(pid) === process.pid
        ? HELD.has(await placeOf(folder, lock))
        : startOf(Number(pid)) === start;
    if (!isAtWork) await folder.remove(lock);
  } catch (error) {
    // A longer file, a link or a folder is not a lock of this platform.
    if (!(error instanceof BadRequestError)) throw error;
  }
}
