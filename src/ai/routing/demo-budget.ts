import { setBounded } from '../../lib/bounded-map.js';
import { TooManyRequestsError } from '../../lib/errors.js';
import type { ClientNetworks } from '../../platform/http/client-networks.js';

const DAY_MS = 24 * 60 * 60_000;

/** Tokens of one client a day, of the 20 million that the demo has a month. */
const CLIENT_TOKENS = 100_000;

/** Maximum number of clients with a budget; beyond that, the one that called longest ago is forgotten. */
const MAX_CLIENTS = 10_000;

/** The use since the start of the client's day, in milliseconds of a monotonic clock. */
interface Used {
  readonly since: number;
  readonly tokens: number;
}

/** A daily budget for each client address and API process, so that no client uses up the demo's tokens. */
export class DemoBudget {
  readonly #used = new Map<string, Used>();

  /**
   * Holds tokens for one call; the result settles the call with the tokens that it used.
   * @throws TooManyRequestsError when the client's budget of the day is used up.
   */
  hold({ site }: ClientNetworks, tokens: number): (used: number) => void {
    const { since, tokens: before } = this.#of(site);
    if (before + tokens > CLIENT_TOKENS) {
      const resetS = (since + DAY_MS - performance.now()) / 1_000;
      throw new TooManyRequestsError('Too many requests', { max: CLIENT_TOKENS, resetS });
    }
    setBounded(this.#used, site, { since, tokens: before + tokens }, MAX_CLIENTS);
    return (used) => {
      const now = this.#of(site);
      // The hold belonged to the day before, or to a client that was forgotten.
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
