import { copyFileSync, existsSync, openSync, statSync, truncateSync } from 'node:fs';

const LIMIT_BYTES = 10_000_000;
const CHECK_EVERY_MS = 30_000;

/** Opens a log for a child to append to. */
export function openLog(file: string): number {
  bound(file);
  return openSync(file, 'a', 0o600);
}

/**
 * Bounds a log that a child writes: beyond 10 MB its content moves to one older part. The child holds the
 * file open, so the file is emptied, not moved.
 *
 * @returns the function that ends the bounding.
 */
export function keepBounded(file: string): () => void {
  const timer = setInterval(() => bound(file), CHECK_EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** Empties a log that is too long; its content becomes the older part. */
export function bound(file: string, limitBytes = LIMIT_BYTES): void {
  if (!existsSync(file) || statSync(file).size <= limitBytes) return;
  copyFileSync(file, `${file}.1`);
  truncateSync(file);
}
