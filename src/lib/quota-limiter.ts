import { TooManyRequestsError } from './errors.js';
import type { Release } from './fair-limiter.js';

/** Seconds: the end of work in flight is not known. */
const RETRY_AFTER_S = 5;

/** The last part of all that is reserved for owners with little: with this part of their own bound, or one. */
const RESERVED = 1 / 4;
const LITTLE = 1 / 64;

export interface QuotaBounds {
  /** The bound for all owners together; unbounded unless given. */
  readonly total?: number;
  readonly perOwner: number;
  /** The error text of a refusal. */
  readonly message?: string;
}

/**
 * Bounds what owners hold at a time, and refuses the rest at once: for requests that a client waits for, and
 * work that may last for long, which a `FairLimiter` would queue. A quarter is reserved for owners with
 * next to nothing, so that a few with all that they may have do not lock out the others.
 */
export class QuotaLimiter {
  readonly #total: number;
  readonly #perOwner: number;
  readonly #little: number;
  readonly #message: string;
  readonly #held = new Map<string, number>();
  #sum = 0;

  constructor({ total = Infinity, perOwner, message }: QuotaBounds) {
    this.#total = total;
    this.#perOwner = perOwner;
    this.#little = Math.max(1, perOwner * LITTLE);
    this.#message = message ?? 'Too many requests at a time, please wait.';
  }

  /**
   * Reserves an amount. @throws TooManyRequestsError if the total of the owner, or of all owners, would exceed
   * its limit
   */
  take(owner: string, amount = 1, little = this.#little): Release {
    const refusing = this.refusing(owner, amount, little);
    if (refusing === undefined) return this.#hold(owner, amount);
    const max = refusing === 'owner' ? this.#perOwner : this.#total;
    const limit = { max, resetS: RETRY_AFTER_S };
    throw new TooManyRequestsError(this.#message, limit, undefined, { retryAfter: RETRY_AFTER_S });
  }

  /** Reserves an amount; undefined if the total of the owner, or of all owners, would exceed its limit. */
  tryTake(owner: string, amount = 1): Release | undefined {
    return this.refusing(owner, amount) === undefined ? this.#hold(owner, amount) : undefined;
  }

  /**
   * Returns whose bound refuses an amount; undefined if both bounds admit it.
   * @param little what the owner may hold of the reserve.
   */
  refusing(owner: string, amount: number, little = this.#little): 'owner' | 'all' | undefined {
    const own = (this.#held.get(owner) ?? 0) + amount;
    const sum = this.#sum + amount;
    if (own > this.#perOwner) return 'owner';
    const isScarce = sum > this.#total * (1 - RESERVED);
    return sum > this.#total || (isScarce && own > little) ? 'all' : undefined;
  }

  #hold(owner: string, amount: number): Release {
    this.#held.set(owner, (this.#held.get(owner) ?? 0) + amount);
    this.#sum += amount;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#sum -= amount;
      const left = (this.#held.get(owner) ?? 0) - amount;
      if (left > 0) this.#held.set(owner, left);
      else this.#held.delete(owner);
    };
  }
}
