/** Caches a result for `keepMs` and shares the call in flight; a failure is not cached. */
export function cachedFor<T>(
  keepMs: number,
  ask: () => Promise<T>,
  now: () => number = () => performance.now(),
): () => Promise<T> {
  let latest: Promise<T> | undefined;
  let freshUntil = Infinity;
  return () => {
    if (latest !== undefined && now() < freshUntil) return latest;
    freshUntil = Infinity;
    latest = ask().then(
      (answer) => {
        freshUntil = now() + keepMs;
        return answer;
      },
      (error: unknown) => {
        latest = undefined;
        throw error;
      },
    );
    return latest;
  };
}
