/**
 * Waits for a promise.
 *
 * @param awaited a name of the result, for the error.
 * @throws if the promise has not settled in this time.
 */
export async function within<T>(awaited: string, ms: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Waited ${ms / 1_000} s for ${awaited}`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
