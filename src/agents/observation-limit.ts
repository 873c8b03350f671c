import pLimit from 'p-limit';

/** Observations at a time: each asks a gateway, and Docker where the gateway does not answer. */
const MAX_AT_ONCE = 100;

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
 * Lets so many observations of agents go at a time; the others wait in the order they came.
 *
 * @returns runs one; throws ObservationLimitError when it had to wait for too long.
 */
export function observationLimit(maxAtOnce = MAX_AT_ONCE, maxWaitMs = MAX_WAIT_MS) {
  const limit = pLimit(maxAtOnce);
  return <T>(observe: () => Promise<T>): Promise<T> => {
    const startBy = performance.now() + maxWaitMs;
    return limit(() => {
      if (performance.now() > startBy) throw new ObservationLimitError();
      return observe();
    });
  };
}
