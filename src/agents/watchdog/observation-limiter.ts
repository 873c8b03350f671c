import { FairLimiter } from '../../lib/fair-limiter.js';

/** Each observation calls a gateway, and Docker if the gateway does not answer. */
const MAX_AT_ONCE = 200;

const MAX_WAIT_MS = 10_000;

export class ObservationLimitError extends Error {
  override readonly name = 'ObservationLimitError';

  constructor() {
    super('Too many agents are being observed');
  }
}

/** Bounds observations of agents. @throws ObservationLimitError after too long a wait. */
export const observationLimiter = (atOnce = MAX_AT_ONCE, maxWaitMs = MAX_WAIT_MS) =>
  new FairLimiter({
    atOnce,
    queue: { maxWaitMs, refusal: () => new ObservationLimitError() },
  });
