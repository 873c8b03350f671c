import { TooManyRequestsError } from './errors.js';

/** Seconds: nobody knows when somebody is done. */
const RETRY_AFTER_S = 5;

/** Gives back what was taken. Again it does nothing. */
export type GiveBack = () => void;

/**
 * Bounds what goes on at a time, in all and of one owner. What finds no room is refused: it is for what
 * somebody waits for, and what may last for long, where `Turns` would have them wait for others.
 */
export class Shares {
  readonly #most: number;
  readonly #perOwner: number;
  readonly #refusal: string;
  readonly #taken = new Map<string, number>();
  #count = 0;

  constructor(bounds: {
    readonly most: number;
    readonly perOwner: number;
    /** The error text of a refusal. */
    readonly refusal: string;
  }) {
    this.#most = bounds.most;
    this.#perOwner = bounds.perOwner;
    this.#refusal = bounds.refusal;
  }

  /** @throws TooManyRequestsError when the owner, or all together, have as many as may be. */
  take(owner: string): GiveBack {
    const own = this.#taken.get(owner) ?? 0;
    if (own >= this.#perOwner || this.#count >= this.#most) {
      const facts = { retryAfter: RETRY_AFTER_S };
      throw new TooManyRequestsError(this.#refusal, undefined, facts);
    }
    this.#taken.set(owner, own + 1);
    this.#count++;
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#count--;
      const left = (this.#taken.get(owner) ?? 0) - 1;
      if (left > 0) this.#taken.set(owner, left);
      else this.#taken.delete(owner);
    };
  }
}
