import { setBounded } from '../../src/lib/bounded-map.js';
import type { ClientNetworks } from '../../src/platform/http/client-networks.js';
import { countedClient, type Counters, type RateLimit, type Taken } from './rate-limit.js';

/** The windows of one limit, by client. All last equally long, so that map order is expiry order. */
type Windows = Map<string, { count: number; endsAt: number }>;

const MAX_CLIENTS_PER_LIMIT = 50_000;

/** Counts in this process. Exact, because check and count run synchronously. */
export class MemoryCounters implements Counters {
  readonly #windowsByLimit = new Map<string, Windows>();
  readonly #now: () => number;

  /** @param now a monotonic clock, in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Returns the number of windows over all limits. */
  get size(): number {
    let size = 0;
    for (const windows of this.#windowsByLimit.values()) size += windows.size;
    return size;
  }

  take(networks: ClientNetworks, limits: readonly RateLimit[], by: 0 | 1 = 1): Taken {
    const now = this.#now();
    this.#dropExpired(now);

    const current = limits.map((limit) => {
      const windows = this.#windowsOf(limit);
      const client = countedClient(networks, limit);
      const window = windows.get(client) ?? { count: 0, endsAt: now + limit.windowMs };
      return { limit, windows, client, window };
    });
    const refused = current.some(({ limit, window }) => window.count >= limit.max);
    const counts = current.map(({ limit, windows, client, window }) => {
      if (!refused && by > 0) {
        window.count++;
        // At capacity, the window that ends first is evicted, to bound memory.
        if (window.count === 1) setBounded(windows, client, window, MAX_CLIENTS_PER_LIMIT);
      }
      return { limit, remaining: limit.max - window.count, resetMs: window.endsAt - now };
    });
    return { refused, counts };
  }

  close(): Promise<void> {
    this.#windowsByLimit.clear();
    return Promise.resolve();
  }

  #windowsOf(limit: RateLimit): Windows {
    let windows = this.#windowsByLimit.get(limit.name);
    if (windows === undefined) {
      windows = new Map();
      this.#windowsByLimit.set(limit.name, windows);
    }
    return windows;
  }

  #dropExpired(now: number): void {
    for (const windows of this.#windowsByLimit.values()) {
      for (const [client, window] of windows) {
        if (window.endsAt > now) break;
        windows.delete(client);
      }
    }
  }
}
