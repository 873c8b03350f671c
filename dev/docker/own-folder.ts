import { lstat, mkdir } from 'node:fs/promises';
import { StartFailure } from '../failure.js';

/** Container processes of other users may traverse the folder, but neither list nor write it. */
const MODE = 0o711;
const WRITABLE_BY_OTHERS = 0o022;

/**
 * Makes a folder that root is going to trust, or finds one that it made before.
 *
 * @throws StartFailure when the folder is a link, or belongs to or is writable by another user.
 */
export async function ensureOwnFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { mode: MODE });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const found = await lstat(folder); // Describes a link itself, not its target.
  const isOwn = found.isDirectory() && found.uid === process.getuid?.();
  if (isOwn && (found.mode & WRITABLE_BY_OTHERS) === 0) return;
  throw new StartFailure(
    `${folder} is not a folder that only this user can write to, so its contents are not trusted: remove it.`,
  );
}
