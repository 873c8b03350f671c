import { Turns } from '../../lib/turns.js';

/** Observations at a time: each asks a gateway, and Docker where the gateway does not answer. */
const MAX_AT_ONCE = 200;

/** Milliseconds after which one that waits is given up. */
const MAX_WAIT_MS = 10_000;

/** Too many agents are being observed, and none of them answers soon. */
export class ObservationLimitError extends Error {
  constructor() {
    super('Too many agents are being looked at');
    this.name = 'ObservationLimitError';
  }
}

/**
 * Lets so many observations of agents go at a time, at most half of them of one owner's; the others
 * wait for their owner's turn.
 *
 * @returns runs one; throws ObservationLimitError when it had to wait for too long.
 */
export function observationLimit(maxAtOnce = MAX_AT_ONCE, maxWaitMs = MAX_WAIT_MS) {
  const turns = new Turns(maxAtOnce);
  return <T>(owner: string, observe: () => Promise<T>): Promise<T> => {
    const waiting = new AbortController();
    const late = setTimeout(() => waiting.abort(new ObservationLimitError()), maxWaitMs);
    return turns
      .run({ owner, isUrgent: false, signal: waiting.signal }, () => {
        clearTimeout(late);
        return observe();
      })
      .finally(() => clearTimeout(late));
  };
}
