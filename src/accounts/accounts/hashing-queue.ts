import { TooManyRequestsError } from '../../lib/errors.js';

/** Seconds in which even a full queue is worked off. */
const RETRY_AFTER_S = 15;

interface Waiting {
  readonly begin: () => void;
  readonly refuse: (error: TooManyRequestsError) => void;
}

export interface HashingBounds {
  readonly atOnce: number;
  /** That wait, of all sites together. */
  readonly waiting: number;
  readonly waitingPerSite: number;
}

/**
 * Passwords or keys that are hashed, and those that wait: sites take turns, and when it is full the site
 * with the most has to make room. So a flood from one place keeps nobody else waiting.
 */
export class HashingQueue {
  readonly #bounds: HashingBounds;
  /** By site, in the order of their turns. */
  readonly #waiting = new Map<string, Waiting[]>();
  #count = 0;
  #atWork = 0;

  constructor(bounds: HashingBounds) {
    this.#bounds = bounds;
  }

  /** @throws TooManyRequestsError when there is no place to wait for the site. */
  async run<T>(site: string, work: () => Promise<T>): Promise<T> {
    await this.#turnOf(site);
    try {
      return await work();
    } finally {
      this.#passOn();
    }
  }

  #turnOf(site: string): Promise<void> | undefined {
    if (this.#atWork < this.#bounds.atOnce) {
      this.#atWork += 1;
      return;
    }
    const own = this.#waiting.get(site) ?? [];
    if (own.length >= this.#bounds.waitingPerSite) throw tooMany();
    if (this.#count >= this.#bounds.waiting) this.#makeRoom(own.length + 1);
    return new Promise((begin, refuse) => {
      own.push({ begin, refuse });
      this.#waiting.set(site, own);
      this.#count += 1;
    });
  }

  /** The last of the site with the most gives up its place, if it has more than `most`. */
  #makeRoom(most: number): void {
    let greediest: readonly [string, Waiting[]] | undefined;
    for (const entry of this.#waiting) {
      if (entry[1].length > (greediest?.[1].length ?? most)) greediest = entry;
    }
    if (!greediest) throw tooMany();
    const [site, waiting] = greediest;
    waiting.pop()?.refuse(tooMany());
    if (waiting.length === 0) this.#waiting.delete(site);
    this.#count -= 1;
  }

  /** Hands the turn to the first of the next site, or gives it back. */
  #passOn(): void {
    for (const [site, waiting] of this.#waiting) {
      this.#waiting.delete(site);
      const next = waiting.shift();
      if (waiting.length > 0) this.#waiting.set(site, waiting);
      if (!next) continue;
      this.#count -= 1;
      return next.begin();
    }
    this.#atWork -= 1;
  }
}

/**
 * The passwords of this process. A flood of sign-ins must take neither all of the memory nor all four
 * threads that file and name look-ups share with scrypt.
 */
export const passwordHashing = new HashingQueue({ atOnce: 2, waiting: 100, waitingPerSite: 10 });

/** Keys, which wait for no passwords; with them it leaves one of the four threads. */
export const keyHashing = new HashingQueue({ atOnce: 1, waiting: 200, waitingPerSite: 100 });

const tooMany = () =>
  new TooManyRequestsError('Too many at once, please try again.', undefined, {
    retryAfter: RETRY_AFTER_S,
  });
