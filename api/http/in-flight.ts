import type { ServerResponse } from 'node:http';
import { QuotaLimiter, type QuotaBounds } from '../../src/lib/quota-limiter.js';
import { whenClosed } from './when-closed.js';

/** A bound of requests in flight, by user and in this process, over all endpoints that name it. */
export interface ConcurrencyLimit extends QuotaBounds {
  /** Unique within a listener. */
  readonly name: string;
  /** Selects the requests that count, by their query; all unless given. */
  readonly counts?: (query: unknown) => boolean;
}

/** Requests in flight in this process, by limit and user. */
export class RequestsInFlight {
  /** By the names of their limits. */
  readonly #limiters = new Map<string, QuotaLimiter>();

  /**
   * Counts work for a user until it is done and its response is sent or closed: neither a client that leaves
   * nor a handler that hands over a stream ends it alone.
   * @throws TooManyRequestsError at the user's bound.
   */
  async run<T>(
    limit: ConcurrencyLimit,
    userId: string,
    response: ServerResponse,
    work: () => Promise<T>,
  ): Promise<T> {
    const release = this.#limiterOf(limit).take(userId);
    const sent = new Promise<void>((resolve) => {
      if (response.destroyed) resolve();
      else whenClosed(response, resolve);
    });
    const working = work();
    void Promise.allSettled([working, sent]).then(release);
    return working;
  }

  #limiterOf(limit: ConcurrencyLimit): QuotaLimiter {
    const limiter = this.#limiters.get(limit.name) ?? new QuotaLimiter(limit);
    this.#limiters.set(limit.name, limiter);
    return limiter;
  }
}
