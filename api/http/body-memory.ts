import type { ServerResponse } from 'node:http';
import { TooManyRequestsError } from '../../src/errors.js';

/** Seconds after which some of it may well be free. */
const RETRY_AFTER_S = 5;

/** Bytes of bodies in this process, from when they come until their requests are answered. */
export class BodyMemory {
  readonly #most: number;
  readonly #mostOfClient: number;
  readonly #ofClient = new Map<string, number>();
  #taken = 0;

  constructor(bounds: { readonly bodiesBytes: number; readonly bodiesBytesOfClient: number }) {
    this.#most = bounds.bodiesBytes;
    this.#mostOfClient = bounds.bodiesBytesOfClient;
  }

  /**
   * Makes room for what comes of a body, until its request is answered.
   *
   * @returns what throws TooManyRequestsError when the client, or all together, would have too many.
   */
  roomFor(client: string, response: ServerResponse): (bytes: number) => void {
    let taken = 0;
    return (bytes) => {
      if (response.closed) return;
      this.#take(client, bytes);
      if (taken === 0) response.once('close', () => this.#free(client, taken));
      taken += bytes;
    };
  }

  #take(client: string, bytes: number): void {
    const ofClient = (this.#ofClient.get(client) ?? 0) + bytes;
    if (ofClient > this.#mostOfClient || this.#taken + bytes > this.#most) {
      throw new TooManyRequestsError('Too many requests at a time, please wait.', undefined, {
        retryAfter: RETRY_AFTER_S,
      });
    }
    this.#ofClient.set(client, ofClient);
    this.#taken += bytes;
  }

  #free(client: string, bytes: number): void {
    const left = (this.#ofClient.get(client) ?? 0) - bytes;
    if (left > 0) this.#ofClient.set(client, left);
    else this.#ofClient.delete(client);
    this.#taken -= bytes;
  }
}
