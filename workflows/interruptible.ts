import { CancellationScope, condition } from '@temporalio/workflow';

/**
 * Runs work that is cancelled, and its end awaited, for something more urgent; the result is then undefined.
 * @throws the work's error, unless the work was cancelled here.
 */
export async function interruptible<T>(
  isUrgent: () => boolean,
  work: () => Promise<T>,
): Promise<T | undefined> {
  const scope = new CancellationScope();
  const waiting = new CancellationScope();
  const result = scope.run(work);
  const over = result.then(
    () => undefined,
    () => undefined,
  );
  try {
    await Promise.race([over, waiting.run(() => condition(isUrgent))]);
  } finally {
    waiting.cancel();
  }
  if (isUrgent()) scope.cancel();
  try {
    return await result;
  } catch (error) {
    if (scope.consideredCancelled) return undefined;
    throw error;
  }
}
