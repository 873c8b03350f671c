/**
 * Asks once however many ask: while it is being found out, and for so many milliseconds after, all get
 * the same answer. A failure is told to who waited for it, and asked again by the next.
 */
export function keptFor<T>(
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
