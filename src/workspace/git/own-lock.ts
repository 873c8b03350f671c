import { readFileSync } from 'node:fs';
import { BadRequestError, ConflictError } from '../../lib/errors.js';
import { createFile, type Folder } from '../files/folder.js';

const MAX_MARK_BYTES = 200;
const MARK = /^agent-platform (\d+) (\d+)\n$/;

/** When a process began, in ticks since the machine did; undefined when it is not there. */
function startOf(pid: number | 'self'): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is a name, which may hold anything.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return undefined; // there is none
  }
}

/**
 * Locks that this very process has, by the place of each. Elsewhere another process may have had its number and its
 * beginning: each sandbox with a kernel of its own counts both anew.
 */
const HELD = new Set<string>();

const placeOf = async (folder: Folder, lock: string): Promise<string> => {
  const { dev, ino } = await folder.self();
  return `${dev} ${ino} ${lock}`;
};

/**
 * Does something while git programs of others leave a file alone, by git's own way of locking it. The
 * lock says whose it is, so that one of ours that was left is known from one of a program at work.
 *
 * @param root of the workspace, on whose file system it is.
 * @throws ConflictError while somebody else has it
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
    // Never without its mark, however short: it would be left as somebody else's.
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
  new ConflictError('Another program is at work in the repository: its lock is there', { lock });

/** Removes a lock that one of our processes left when it was killed. */
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
    // What is larger, a link or a folder is no lock of ours.
    if (!(error instanceof BadRequestError)) throw error;
  }
}
