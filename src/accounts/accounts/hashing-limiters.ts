import { TooManyRequestsError } from '../../lib/errors.js';
import { FairLimiter } from '../../lib/fair-limiter.js';

/** Seconds in which even a full queue is worked off. */
const RETRY_AFTER_S = 15;

/** Bounds the hashing of this process, fairly between sites: a flood from one site delays no other. */
const hashingLimiter = (
  atOnce: number,
  queue: { readonly max: number; readonly perOwner: number },
) =>
  new FairLimiter({
    atOnce,
    perOwner: atOnce,
    queue: {
      ...queue,
      refusal: (max) =>
        new TooManyRequestsError(
          'Too many at once, please try again.',
          { max, resetS: RETRY_AFTER_S },
          undefined,
          { retryAfter: RETRY_AFTER_S },
        ),
    },
  });

/** Bounds a flood of sign-ins: memory, and the four threads that scrypt shares with file and name look-ups. */
export const passwordHashing = hashingLimiter(2, { max: 100, perOwner: 10 });

/** API keys, which wait for no passwords; together they leave one of the four threads. */
export const keyHashing = hashingLimiter(1, { max: 200, perOwner: 100 });
