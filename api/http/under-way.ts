import type { ServerResponse } from 'node:http';
import { TooManyRequestsError } from '../../src/errors.js';

/** At most so many requests of one user under way at a time, of all endpoints that name it. */
export interface ConcurrencyLimit {
  /** Unique within a listener. */
  readonly name: string;
  readonly max: number;
  /** Which of them count, by what was asked; all unless said. */
  readonly counts?: (query: unknown) => boolean;
}

/** Seconds after which one of them may well have ended. */
const RETRY_AFTER_S = 5;

/** Who has how many requests under way in this process. */
export class UnderWay {
  readonly #counts = new Map<string, number>();

  /**
   * Counts work for a user until it is done and its answer is out or its client gone: neither a client
   * that leaves nor a handler that hands over a stream ends it alone.
   *
   * @throws TooManyRequestsError when the user has as many already.
   */
  async run<T>(
    { name, max }: ConcurrencyLimit,
    userId: string,
    response: ServerResponse,
    work: () => Promise<T>,
  ): Promise<T> {
    const key = `${name} ${userId}`;
    const count = this.#counts.get(key) ?? 0;
    if (count >= max) {
      throw new TooManyRequestsError('Too many requests at a time, please wait.', undefined, {
        retryAfter: RETRY_AFTER_S,
      });
    }
    this.#counts.set(key, count + 1);
    const sent = new Promise<void>((resolve) => {
      if (response.destroyed) resolve();
      else response.once('close', resolve);
    });
    const working = work();
    void Promise.allSettled([working, sent]).then(() => this.#end(key));
    return working;
  }

  #end(key: string): void {
    const left = (this.#counts.get(key) ?? 1) - 1;
    if (left > 0) this.#counts.set(key, left);
    else this.#counts.delete(key);
  }
}
