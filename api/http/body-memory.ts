import type { ServerResponse } from 'node:http';
import { Shares, type Release } from '../../src/lib/shares.js';
import { whenClosed } from './when-closed.js';

/** Bytes of bodies in this process, from when they come until their requests are answered. */
export class BodyMemory {
  readonly #bytes: Shares;

  constructor(bounds: { readonly bodiesBytes: number; readonly bodiesBytesOfOwner: number }) {
    this.#bytes = new Shares({ most: bounds.bodiesBytes, perOwner: bounds.bodiesBytesOfOwner });
  }

  /**
   * Makes room for what comes of a body, until its request is answered.
   *
   * @returns what throws TooManyRequestsError when the owner, or all together, would have too many.
   */
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
