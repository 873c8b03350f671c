import { TooManyRequestsError } from '../../lib/errors.js';

/** Seconds in which even a full queue drains. */
const RETRY_AFTER_S = 15;

interface Waiting {
  readonly begin: () => void;
  readonly refuse: (error: TooManyRequestsError) => void;
}

export interface HashingBounds {
  readonly atOnce: number;
  /** Maximum number of waiting jobs over all sites. */
  readonly waiting: number;
  readonly waitingPerSite: number;
}

/**
 * A fair queue for hashing passwords or keys: sites take turns, and a full queue drops a job of the site
 * with the most waiting jobs. A flood from one network thus delays no other.
 */
export class HashingQueue {
  readonly #bounds: HashingBounds;
  /** Waiting jobs by site, in the order of their turns. */
  readonly #waiting = new Map<string, Waiting[]>();
  #count = 0;
  #atWork = 0;

  constructor(bounds: HashingBounds) {
    this.#bounds = bounds;
  }

  /**
   * Runs the work when the site's turn comes.
   *
   * @throws TooManyRequestsError when the queue has no place for the site.
   */
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

  /** Drops the last job of the site with the most waiting jobs, if that site has more than `most`. */
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

  /** Passes the turn to the first job of the next site, or releases it. */
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
 * The password queue of this process. A flood of sign-ins must not use all of the memory, nor all four
 * threads that file and name look-ups share with scrypt.
 */
export const passwordHashing = new HashingQueue({ atOnce: 2, waiting: 100, waitingPerSite: 10 });

/** The key queue, separate from passwords. Both queues together leave one of the four threads free. */
export const keyHashing = new HashingQueue({ atOnce: 1, waiting: 200, waitingPerSite: 100 });

const tooMany = () =>
  new TooManyRequestsError('Too many requests at once: wait and retry.', undefined, {
    retryAfter: RETRY_AFTER_S,
  });
