/** Works like `Promise.all`, but rejects only after all have settled, as they may share resources. */
export async function allSettledOrThrow<const T extends readonly unknown[]>(
  all: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  await Promise.allSettled(all);
  return Promise.all(all);
}
