import { lstat, mkdir } from 'node:fs/promises';
import { StartFailure } from '../failure.js';

/** Others may pass, because a container's processes do, but neither look around nor write. */
const MODE = 0o711;
const WRITABLE_BY_OTHERS = 0o022;

/**
 * Makes a folder that root is going to trust, or finds one that it has made before.
 *
 * @throws StartFailure when what is there is a link, or is or may be written by somebody else.
 */
export async function ensureOwnFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { mode: MODE });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const found = await lstat(folder); // of a link, what it is and not what it leads to
  const isOwn = found.isDirectory() && found.uid === process.getuid?.();
  if (isOwn && (found.mode & WRITABLE_BY_OTHERS) === 0) return;
  throw new StartFailure(
    `${folder} is not a folder that this user alone writes to, so what is in it is not trusted: remove it.`,
  );
}
