/**
 * Caches a result for `keepMs` and shares the call in flight; a failure is not cached. `by` names the
 * causer of a new call, and has no influence on the result.
 */
export function cachedFor<T, By extends readonly unknown[] = []>(
  keepMs: number,
  load: (...by: By) => Promise<T>,
  now: () => number = () => performance.now(),
): (...by: By) => Promise<T> {
  let latest: Promise<T> | undefined;
  let freshUntil = Infinity;
  return (...by) => {
    if (latest !== undefined && now() < freshUntil) return latest;
    freshUntil = Infinity;
    latest = load(...by).then(
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
