import { SettingsError } from '../src/platform/environment/settings-error.js';

/** A failure that a person can fix: shown as this one sentence, without a stack. */
export class StartFailure extends Error {
  override readonly name: string = 'StartFailure';
}

/** A disk that is full or not writable: starting the remaining parts is useless. */
export class DiskFailure extends StartFailure {
  override readonly name = 'DiskFailure';
}

/**
 * Returns an explanation of a failed system call for the person at the terminal, or the error's own
 * message.
 */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof StartFailure) return error.message;
  const { code, path, syscall } = error as NodeJS.ErrnoException;
  const place = path ?? 'the data folder';
  if (code === 'ENOSPC') return `The disk that holds ${place} is full: free some space first.`;
  // A mkdir with parents on a read-only disk fails as if a parent were missing.
  const unwritable = code === 'EROFS' || code === 'EACCES' || code === 'EPERM';
  if (unwritable || (code === 'ENOENT' && syscall === 'mkdir')) {
    return `${place} cannot be written by this user: make it writable, or set DATA_DIR and CACHE_DIR.`;
  }
  return error instanceof SettingsError ? error.message : (error.stack ?? error.message);
}
