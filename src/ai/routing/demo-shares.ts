import { setBounded } from '../../lib/bounded-map.js';
import { TooManyRequestsError } from '../../lib/errors.js';
import type { ClientNetworks } from '../../platform/http/client-networks.js';

const DAY_MS = 24 * 60 * 60_000;

/** Daily tokens per client, out of the demo's 20 million a month. */
const CLIENT_TOKENS = 100_000;

/** Maximum clients kept; more evict those that came first. */
const MAX_CLIENTS = 10_000;

/** A client's usage since a time, in milliseconds of a monotonic clock. */
interface Used {
  readonly since: number;
  readonly tokens: number;
}

/**
 * Limits the demo's tokens per client network, so that no client uses all of them. Each API process
 * counts separately.
 */
export class DemoShares {
  readonly #used = new Map<string, Used>();

  /**
   * Reserves tokens for one call.
   *
   * @returns a callback that reports the tokens used.
   * @throws TooManyRequestsError when the client's tokens for the day are used up.
   */
  hold({ site }: ClientNetworks, tokens: number): (used: number) => void {
    const { since, tokens: before } = this.#of(site);
    if (before + tokens > CLIENT_TOKENS) throw new TooManyRequestsError('Too many requests');
    setBounded(this.#used, site, { since, tokens: before + tokens }, MAX_CLIENTS);
    return (used) => {
      const now = this.#of(site);
      // The reservation is from a previous period or was evicted: there is nothing to return.
      if (now.since !== since) return;
      setBounded(this.#used, site, { since, tokens: now.tokens - tokens + used }, MAX_CLIENTS);
    };
  }

  #of(site: string): Used {
    const used = this.#used.get(site);
    const now = performance.now();
    return used && now - used.since < DAY_MS ? used : { since: now, tokens: 0 };
  }
}
