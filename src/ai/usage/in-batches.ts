const ENOUGH_MS = 5_000;

/** Repeats work until a batch is not full or five seconds have passed; returns the total handled. */
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
