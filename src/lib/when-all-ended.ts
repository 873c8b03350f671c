/** As `Promise.all`, but when one fails, not before the others have ended: what they work with may go then. */
export async function whenAllEnded<const T extends readonly unknown[]>(
  all: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  await Promise.allSettled(all);
  return Promise.all(all);
}
