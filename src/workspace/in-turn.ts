import { ServiceError, UnavailableError } from '../lib/errors.js';
import type { Turns } from '../lib/turns.js';

/** Milliseconds for what is asked of a workspace, the wait for its turn included. */
const ANSWERED_WITHIN_MS = 40_000;

interface Asked {
  readonly owner: string;
  /** Aborts when nobody waits any more. */
  readonly signal: AbortSignal | undefined;
  readonly withinMs?: number;
}

/**
 * Does what somebody waits for in its turn, and in time. The turn lasts until the work has ended, also when nobody
 * waits for that any more.
 *
 * @param work ends early when its signal aborts.
 * @throws UnavailableError for what had no turn in time, ServiceError (500) for what was not done; the signal's reason
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
      : new UnavailableError('Too much is asked of workspaces: come again in a minute');
  }
}
