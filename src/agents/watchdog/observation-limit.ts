import { Turns } from '../../lib/turns.js';

/** Maximum observations in flight: each calls a gateway, and Docker if the gateway does not respond. */
const MAX_AT_ONCE = 200;

/** Milliseconds after which a waiting observation fails. */
const MAX_WAIT_MS = 10_000;

/** Too many observations are in flight, and none finishes in time. */
export class ObservationLimitError extends Error {
  constructor() {
    super('Too many agents are being observed: retry later');
    this.name = 'ObservationLimitError';
  }
}

/**
 * Limits the observations in flight, at most half of them for one owner; the rest wait for their owner's
 * turn.
 *
 * @returns a function that runs an observation; throws ObservationLimitError after waiting too long.
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
