import { SettingsError } from '../src/platform/environment/settings-error.js';

/** Something a person can put right: shown as this one sentence, without a stack. */
export class StartFailure extends Error {
  constructor(sentence: string, options?: ErrorOptions) {
    super(sentence, options);
    this.name = 'StartFailure';
  }
}

/** A disk that is full or cannot be written: nothing is gained by starting the rest. */
export class DiskFailure extends StartFailure {
  constructor(sentence: string, options?: ErrorOptions) {
    super(sentence, options);
    this.name = 'DiskFailure';
  }
}

/** What a failed system call means to the person at the terminal, or the error's own words. */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof StartFailure) return error.message;
  const { code, path, syscall } = error as NodeJS.ErrnoException;
  const place = path ?? 'the data folder';
  if (code === 'ENOSPC') return `The disk that holds ${place} is full: free some space first.`;
  // Making a folder and its parents on a read-only disk fails as if a parent were missing.
  const unwritable = code === 'EROFS' || code === 'EACCES' || code === 'EPERM';
  if (unwritable || (code === 'ENOENT' && syscall === 'mkdir')) {
    return `${place} cannot be written by this user: make it writable, or set DATA_DIR and CACHE_DIR.`;
  }
  return error instanceof SettingsError ? error.message : (error.stack ?? error.message);
}
