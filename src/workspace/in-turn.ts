import { ServiceError, UnavailableError } from '../lib/errors.js';
import type { Turns } from '../lib/turns.js';

/** Milliseconds for a workspace request, including the wait for its turn. */
const ANSWERED_WITHIN_MS = 40_000;

interface Asked {
  readonly owner: string;
  /** Aborts when the client stops waiting. */
  readonly signal: AbortSignal | undefined;
  readonly withinMs?: number;
}

/**
 * Runs work in its turn and within a time limit. The turn ends with the work, even if the client stops
 * waiting earlier.
 *
 * @param work ends early when its signal aborts.
 * @throws UnavailableError if the turn did not come in time, ServiceError (500) if the work did not end
 *   in time; the signal's reason
 */
export async function inTurn<T>(
  turns: Turns,
  { owner, signal, withinMs = ANSWERED_WITHIN_MS }: Asked,
  work: (ending: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = AbortSignal.timeout(withinMs);
  const ending = signal ? AbortSignal.any([signal, late]) : late;
  let hasBegun = false;
  const done = turns.run({ owner, isUrgent: true, signal: ending }, () => {
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
      : new UnavailableError('Too many workspace requests: retry in a minute');
  }
}
