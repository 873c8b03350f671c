import type { ServerResponse } from 'node:http';
import { Shares, type GiveBack } from '../../src/shares.js';
import { whenClosed } from './when-closed.js';

/** Bytes of bodies in this process, from when they come until their requests are answered. */
export class BodyMemory {
  readonly #bytes: Shares;

  constructor(bounds: { readonly bodiesBytes: number; readonly bodiesBytesOfClient: number }) {
    this.#bytes = new Shares({ most: bounds.bodiesBytes, perOwner: bounds.bodiesBytesOfClient });
  }

  /**
   * Makes room for what comes of a body, until its request is answered.
   *
   * @returns what throws TooManyRequestsError when the client, or all together, would have too many.
   */
  roomFor(client: string, response: ServerResponse): (bytes: number) => void {
    const taken: GiveBack[] = [];
    return (bytes) => {
      if (response.closed) return;
      const giveBack = this.#bytes.take(client, bytes);
      if (taken.length === 0) whenClosed(response, () => taken.forEach((each) => each()));
      taken.push(giveBack);
    };
  }
}
