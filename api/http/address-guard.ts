import { setBounded } from '../../src/lib/bounded-map.js';
import { networksOf } from '../../src/platform/http/client-networks.js';
import type { RateLimit, Taken } from './rate-limit.js';

const WINDOW_MS = 60_000;

/** Maximum number of tracked addresses; beyond it, the least recently active address is evicted. */
const MAX_ADDRESSES = 200_000;

/** Limits an address's requests to a listener, by one map lookup each. All windows end together. */
export class AddressGuard {
  readonly #limit: RateLimit;
  readonly #now: () => number;
  readonly #counts = new Map<string, number>();
  #endsAt = 0;

  /** @param now a monotonic clock, in milliseconds. */
  constructor(perMinute: number, now: () => number = () => performance.now()) {
    this.#limit = {
      name: 'address',
      max: perMinute,
      windowMs: WINDOW_MS,
      message: 'Too many requests, please slow down.',
    };
    this.#now = now;
  }

  /** Counts a request of the address. @returns undefined if the request is within the limit. */
  refuse(address: string): Taken | undefined {
    const now = this.#now();
    if (now >= this.#endsAt) {
      this.#counts.clear();
      this.#endsAt = now + WINDOW_MS;
    }
    const { host } = networksOf(address);
    const count = (this.#counts.get(host) ?? 0) + 1;
    setBounded(this.#counts, host, count, MAX_ADDRESSES);
    if (count <= this.#limit.max) return undefined;
    const resetMs = this.#endsAt - now;
    return { refused: true, counts: [{ limit: this.#limit, remaining: 0, resetMs }] };
  }
}
