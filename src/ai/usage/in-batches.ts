/** Milliseconds after which no further batch is begun. */
const ENOUGH_MS = 5_000;

/**
 * Does work that may be done in any number of parts, part after part, until nothing is left or
 * enough time has passed.
 *
 * @param work does up to so many, and answers how many there were.
 * @returns how many were done.
 */
export async function inBatches(
  size: number,
  work: (most: number) => Promise<number>,
): Promise<number> {
  const end = performance.now() + ENOUGH_MS;
  let done = 0;
  let last = size;
  while (last === size && performance.now() < end) {
    last = await work(size);
    done += last;
  }
  return done;
}
