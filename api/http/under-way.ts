import type { ServerResponse } from 'node:http';
import { Shares } from '../../src/lib/shares.js';
import { whenClosed } from './when-closed.js';

/** A limit on one user's requests in flight, shared by all endpoints that name it. */
export interface ConcurrencyLimit {
  /** Name, unique within a listener. */
  readonly name: string;
  readonly max: number;
  /** Limit for all users together in this process; unlimited by default. */
  readonly most?: number;
  /** Reports whether a request with this query counts; by default all do. */
  readonly counts?: (query: unknown) => boolean;
}

/** Requests in flight in this process, by limit and user. */
export class UnderWay {
  /** Counts, by limit name. */
  readonly #shares = new Map<string, Shares>();

  /**
   * Runs work for a user and counts it until it is done and its answer is sent or the client has
   * disconnected: a disconnect or the start of a stream alone does not end it.
   *
   * @throws TooManyRequestsError if the user is at the limit.
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
