import { setBounded } from '../../lib/bounded-map.js';
import { TooManyRequestsError } from '../../lib/errors.js';
import type { ClientNetworks } from '../../platform/http/client-networks.js';

const DAY_MS = 24 * 60 * 60_000;

/** Tokens of one client a day, of the 20 million that the demo has a month. */
const CLIENT_TOKENS = 100_000;

/** Clients that are known; of more, those that came longest ago are forgotten. */
const MAX_CLIENTS = 10_000;

/** What a client has used since when, in milliseconds that never go back. */
interface Used {
  readonly since: number;
  readonly tokens: number;
}

/**
 * Deals the demo's tokens among those who visit it, by address: nobody has all of them. Each API process
 * counts for itself.
 */
export class DemoShares {
  readonly #used = new Map<string, Used>();

  /**
   * Holds tokens for one call.
   *
   * @returns what says how many it used.
   * @throws TooManyRequestsError when the client has no more of them today.
   */
  hold({ site }: ClientNetworks, tokens: number): (used: number) => void {
    const { since, tokens: before } = this.#of(site);
    if (before + tokens > CLIENT_TOKENS) throw new TooManyRequestsError('Too many requests');
    setBounded(this.#used, site, { since, tokens: before + tokens }, MAX_CLIENTS);
    return (used) => {
      const now = this.#of(site);
      // Of the day before, or forgotten meanwhile: there is nothing to take back.
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
