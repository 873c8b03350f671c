import { TooManyRequestsError } from './errors.js';

/** Seconds: nobody knows when somebody is done. */
const RETRY_AFTER_S = 5;

/** Of all there is, what is left to those who have little: of what an owner may have, or one. */
const LEFT_TO_LITTLE = 1 / 4;
const LITTLE = 1 / 64;

/** Gives back what was taken. Again it does nothing. */
export type Release = () => void;

export interface ShareBounds {
  /** In all; without a bound unless said. */
  readonly most?: number;
  readonly perOwner: number;
  /** The error text of a refusal. */
  readonly refusal?: string;
}

/**
 * Bounds what goes on at a time, in all and of one owner. What finds no room is refused: it is for what
 * somebody waits for, and what may last for long, where `Turns` would have them wait for others. The last
 * quarter is for owners who have next to nothing: some who have as much as they may, be they one person,
 * do not keep everybody else out.
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

  /** @throws TooManyRequestsError when the owner, or all together, would have more than may be. */
  take(owner: string, amount = 1): Release {
    const taken = this.tryTake(owner, amount);
    if (taken) return taken;
    throw new TooManyRequestsError(this.#refusal, undefined, { retryAfter: RETRY_AFTER_S });
  }

  /** @returns undefined when the owner, or all together, would have more than may be. */
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
