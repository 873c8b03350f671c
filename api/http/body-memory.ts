import type { ServerResponse } from 'node:http';
import { UnavailableError } from '../../src/lib/errors.js';
import type { Release } from '../../src/lib/fair-limiter.js';
import { QuotaLimiter } from '../../src/lib/quota-limiter.js';
import { whenClosed } from './when-closed.js';

/** The most bytes of bodies in memory: of all requests in flight, and of those of one owner. */
export interface BodyBudget {
  readonly bodiesBytes: number;
  readonly bodiesBytesOfOwner: number;
}

const MIB = 1024 * 1024;

const BUDGET: BodyBudget = { bodiesBytes: 256 * MIB, bodiesBytesOfOwner: 64 * MIB };

/** Bytes of the reserve that an unauthenticated client may hold: enough for forms, such as those for signing in. */
const LITTLE_OF_ANONYMOUS = 16 * 1024;

const RETRY_AFTER_S = 5;

/** The owner of the memory that a body uses. */
export interface BodyOwner {
  /** A user, an agent, or the address of an unauthenticated client. */
  readonly name: string;
  readonly isAnonymous: boolean;
}

/** Bytes of request bodies in memory, from arrival until the request is answered. */
export class BodyMemory {
  readonly #bytes: QuotaLimiter;

  constructor({ bodiesBytes, bodiesBytesOfOwner }: BodyBudget) {
    this.#bytes = new QuotaLimiter({ total: bodiesBytes, perOwner: bodiesBytesOfOwner });
  }

  /**
   * Returns a function that reserves bytes until the response ends.
   * @throws UnavailableError beyond the budget; TooManyRequestsError if one known owner holds too much.
   */
  roomFor({ isAnonymous, name }: BodyOwner, response: ServerResponse): (bytes: number) => void {
    const taken: Release[] = [];
    const little = isAnonymous ? LITTLE_OF_ANONYMOUS : undefined;
    return (bytes) => {
      if (response.closed) return;
      const refusing = this.#bytes.refusing(name, bytes, little);
      // Many people may share an address, so its bound is no fault of one of them.
      if (refusing === 'all' || (refusing && isAnonymous)) throw new BodyMemoryFullError();
      const release = this.#bytes.take(name, bytes, little);
      if (taken.length === 0) whenClosed(response, () => taken.forEach((each) => each()));
      taken.push(release);
    };
  }
}

/** 503: the bodies of the requests in flight use all the memory for bodies. */
class BodyMemoryFullError extends UnavailableError {
  override readonly name = 'BodyMemoryFullError';

  constructor() {
    super('Too many large requests at a time: retry later', undefined, {
      retryAfter: RETRY_AFTER_S,
    });
  }
}

/** The one budget of all listeners of this process. */
const OF_PROCESS = new BodyMemory(BUDGET);

/** Returns the memory for bodies: that of the process, or an own one with the bounds of a test. */
export const bodyMemory = (bounds: Partial<BodyBudget> = {}): BodyMemory =>
  bounds.bodiesBytes === undefined && bounds.bodiesBytesOfOwner === undefined
    ? OF_PROCESS
    : new BodyMemory({ ...BUDGET, ...bounds });
