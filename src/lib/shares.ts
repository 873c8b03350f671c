import { TooManyRequestsError } from './errors.js';

/** Seconds after which a client may retry; the time of the next release is unknown. */
const RETRY_AFTER_S = 5;

/**
 * Part of the total reserved for owners with little, and the part of an owner's limit that counts as
 * little, at least one.
 */
const LEFT_TO_LITTLE = 1 / 4;
const LITTLE = 1 / 64;

/** Releases a share; repeated calls have no effect. */
export type Release = () => void;

export interface ShareBounds {
  /** Limit in total; unlimited by default. */
  readonly most?: number;
  readonly perOwner: number;
  /** Error text of a rejection. */
  readonly refusal?: string;
}

/**
 * Limits concurrent use, in total and for each owner. Excess requests are rejected instead of queued (as
 * `Turns` does), for work that is awaited or may take long. The last quarter is reserved for owners with
 * hardly any use, so that a few heavy owners cannot exclude the rest.
 */
export class Shares {
  readonly #most: number;
  readonly #perOwner: number;
  readonly #refusal: string;
  readonly #taken = new Map<string, number>();
  #sum = 0;

  constructor({ most = Infinity, perOwner, refusal }: ShareBounds) {
    this.#most = most;
    this.#perOwner = perOwner;
    this.#refusal = refusal ?? 'Too many requests at a time, please wait.';
  }

  /** Takes a share. @throws TooManyRequestsError if the limit of the owner or the total is exceeded. */
  take(owner: string, amount = 1): Release {
    const taken = this.tryTake(owner, amount);
    if (taken) return taken;
    throw new TooManyRequestsError(this.#refusal, undefined, { retryAfter: RETRY_AFTER_S });
  }

  /** Takes a share; undefined if the limit of the owner or the total is exceeded. */
  tryTake(owner: string, amount = 1): Release | undefined {
    const own = (this.#taken.get(owner) ?? 0) + amount;
    const sum = this.#sum + amount;
    if (own > this.#perOwner || sum > this.#most) return undefined;
    const isScarce = sum > this.#most * (1 - LEFT_TO_LITTLE);
    if (isScarce && own > Math.max(1, this.#perOwner * LITTLE)) return undefined;
    this.#taken.set(owner, own);
    this.#sum += amount;
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#sum -= amount;
      const left = (this.#taken.get(owner) ?? 0) - amount;
      if (left > 0) this.#taken.set(owner, left);
      else this.#taken.delete(owner);
    };
  }
}
