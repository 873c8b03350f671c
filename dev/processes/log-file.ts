import { copyFileSync, existsSync, openSync, statSync, truncateSync } from 'node:fs';

const LIMIT_BYTES = 10_000_000;
const LOOK_EVERY_MS = 30_000;

/** Opens a log for a child to append to. */
export function openLog(file: string): number {
  bound(file);
  return openSync(file, 'a', 0o600);
}

/**
 * Keeps a log that a child writes from growing without end: beyond 10 MB it goes on in an empty
 * file, and one older part is kept. The child holds the file open, so it is emptied, not moved.
 *
 * @returns stops that.
 */
export function keepBounded(file: string): () => void {
  const timer = setInterval(() => bound(file), LOOK_EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** Empties a log that is too long; what is in it becomes its older part. */
export function bound(file: string, limitBytes = LIMIT_BYTES): void {
  if (!existsSync(file) || statSync(file).size <= limitBytes) return;
  copyFileSync(file, `${file}.1`);
  truncateSync(file);
}
