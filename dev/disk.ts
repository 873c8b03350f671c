import { mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { DiskFailure } from './failure.js';

/** Files to reserve: an empty PostgreSQL cluster already has a thousand. */
const NEEDED_FILES = 3_000;

/**
 * Makes a folder, and checks that it is writable and has room before anything depends on it: other
 * programs' messages about a full disk are hard to find, or missing.
 *
 * @param variable the setting that names the folder, for the error message.
 * @throws DiskFailure
 */
export function requireRoom(variable: string, folder: string, bytes: number): void {
  const probe = path.join(folder, `.probe.${process.pid}`);
  try {
    mkdirSync(folder, { recursive: true });
    writeFileSync(probe, '');
    rmSync(probe);
  } catch (cause) {
    throw unusable(variable, folder, cause);
  }
  const { bavail, bsize, files, ffree } = statfsSync(folder);
  const free = bavail * bsize;
  if (free < bytes) {
    throw new DiskFailure(
      `The disk that holds ${folder} has only ${megabytes(free)} left: free ${megabytes(bytes)}, or set ${variable} to another disk.`,
    );
  }
  // Some file systems allocate inodes as needed and report none.
  if (files > 0 && ffree < NEEDED_FILES) {
    throw new DiskFailure(
      `The disk that holds ${folder} has room for only ${ffree} more files: remove some, or set ${variable} to another disk.`,
    );
  }
}

function unusable(variable: string, folder: string, cause: unknown): unknown {
  const { code, syscall } = cause as NodeJS.ErrnoException;
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return new DiskFailure(
      `The disk that holds ${folder} is full: free some space, or set ${variable} to another disk.`,
      { cause },
    );
  }
  // A mkdir with parents on a read-only disk fails as if a parent were missing.
  const unwritable = code === 'EROFS' || code === 'EACCES' || code === 'EPERM';
  if (!unwritable && !(code === 'ENOENT' && syscall === 'mkdir')) return cause;
  return new DiskFailure(
    `${folder} cannot be written by this user: make it writable, or set ${variable} to another folder.`,
    { cause },
  );
}

function megabytes(bytes: number): string {
  return `${Math.floor(bytes / 1_000_000)} MB`;
}
