import { ServiceError, UnavailableError } from '../lib/errors.js';
import type { FairLimiter } from '../lib/fair-limiter.js';

/** Milliseconds of a request to a workspace, its wait for a slot included. */
const DEADLINE_MS = 40_000;

interface DeadlineCaller {
  readonly owner: string;
  /** Aborts when the client leaves. */
  readonly signal: AbortSignal | undefined;
  readonly withinMs?: number;
}

/**
 * Runs work in a slot, which it keeps until its end, and answers by the deadline; its signal should end it.
 * @throws UnavailableError without a slot in time, ServiceError (500) without an end; the signal's reason
 */
export async function runWithDeadline<T>(
  limiter: FairLimiter,
  { owner, signal, withinMs = DEADLINE_MS }: DeadlineCaller,
  work: (ending: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = AbortSignal.timeout(withinMs);
  const ending = signal ? AbortSignal.any([signal, late]) : late;
  let hasBegun = false;
  const done = limiter.run({ owner, signal: ending }, () => {
    hasBegun = true;
    return work(ending);
  });
  const over = new Promise<never>((_, reject) => {
    ending.addEventListener('abort', () => reject(new Error('Over')), { once: true });
  });
  try {
    return await Promise.race([done, over]);
  } catch (error) {
    signal?.throwIfAborted();
    if (!late.aborted) throw error;
    throw hasBegun
      ? new ServiceError(500, 'The workspace did not finish the request in time: retry later')
      : new UnavailableError('Too many workspace requests are in progress: retry in a minute');
  }
}
