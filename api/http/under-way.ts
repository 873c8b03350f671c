import type { ServerResponse } from 'node:http';
import { Shares } from '../../src/lib/shares.js';
import { whenClosed } from './when-closed.js';

/** At most so many requests of one user under way at a time, of all endpoints that name it. */
export interface ConcurrencyLimit {
  /** Unique within a listener. */
  readonly name: string;
  readonly max: number;
  /** Of all users together, in this process; without a bound unless said. */
  readonly most?: number;
  /** Which of them count, by what was asked; all unless said. */
  readonly counts?: (query: unknown) => boolean;
}

/** Who has how many requests under way in this process. */
export class UnderWay {
  /** By the names of their limits. */
  readonly #shares = new Map<string, Shares>();

  /**
   * Counts work for a user until it is done and its answer is out or its client gone: neither a client
   * that leaves nor a handler that hands over a stream ends it alone.
   *
   * @throws TooManyRequestsError when the user has as many already.
   */
  async run<T>(
    limit: ConcurrencyLimit,
    userId: string,
    response: ServerResponse,
    work: () => Promise<T>,
  ): Promise<T> {
    const release = this.#sharesOf(limit).take(userId);
    const sent = new Promise<void>((resolve) => {
      if (response.destroyed) resolve();
      else whenClosed(response, resolve);
    });
    const working = work();
    void Promise.allSettled([working, sent]).then(release);
    return working;
  }

  #sharesOf({ name, max: perOwner, most }: ConcurrencyLimit): Shares {
    let shares = this.#shares.get(name);
    if (!shares) {
      shares = new Shares({ perOwner, ...(most !== undefined && { most }) });
      this.#shares.set(name, shares);
    }
    return shares;
  }
}
