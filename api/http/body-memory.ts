import type { ServerResponse } from 'node:http';
import type { Release } from '../../src/lib/fair-limiter.js';
import { QuotaLimiter } from '../../src/lib/quota-limiter.js';
import { whenClosed } from './when-closed.js';

/** Bytes of request bodies in this process's memory, from arrival until the request is answered. */
export class BodyMemory {
  readonly #bytes: QuotaLimiter;

  constructor(bounds: { readonly bodiesBytes: number; readonly bodiesBytesOfOwner: number }) {
    this.#bytes = new QuotaLimiter({
      total: bounds.bodiesBytes,
      perOwner: bounds.bodiesBytesOfOwner,
    });
  }

  /** Returns a function that reserves bytes until the response ends. @throws TooManyRequestsError */
  roomFor(owner: string, response: ServerResponse): (bytes: number) => void {
    const taken: Release[] = [];
    return (bytes) => {
      if (response.closed) return;
      const release = this.#bytes.take(owner, bytes);
      if (taken.length === 0) whenClosed(response, () => taken.forEach((each) => each()));
      taken.push(release);
    };
  }
}
