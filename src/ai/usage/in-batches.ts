/** Milliseconds after which no further batch starts. */
const ENOUGH_MS = 5_000;

/**
 * Repeats work in batches until none is left or enough time has passed.
 *
 * @param work handles up to the given number and returns how many it handled.
 * @returns the total number handled.
 */
export async function processInBatches(
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
