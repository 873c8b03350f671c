/** Rows of one look, and calls to Temporal at a time. */
export const PAGE = 200;
export const CONCURRENCY = 20;

/** Does the work for all of them, so many at a time. */
export async function forEachLimit<T>(
  items: readonly T[],
  work: (item: T) => Promise<void>,
): Promise<void> {
  for (let start = 0; start < items.length; start += CONCURRENCY) {
    await Promise.all(items.slice(start, start + CONCURRENCY).map(work));
  }
}
