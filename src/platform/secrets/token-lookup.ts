import { Batcher } from '../../lib/batcher.js';
import type { Database, FunctionCall } from '../database/database.js';
import { tokenHash } from './token-hash.js';
import { isPlan, type Plan } from '../../types/plans.js';
import type { SealedOwnKeys } from '../../types/sealed-own-keys.js';

/** Maximum number of tokens per round trip. */
const MAX_BATCH = 200;

interface Found {
  readonly hash: string;
}

/** A subscription as the lookup function returns it; nulls without one. */
export interface FoundSubscription {
  readonly plan: string | null;
  readonly subscription_active: boolean | null;
}

/** The own keys of AI providers as a lookup function returns them; null without any. */
export interface FoundOwnKeys {
  readonly own_keys: SealedOwnKeys | null;
}

/** Looks up the holders of tokens of any form, with one round trip for concurrent lookups. */
export class TokenLookup<Row extends Found> {
  readonly #batches: Batcher<string, Row | undefined>;
  readonly #database: Database;
  readonly #statement: FunctionCall;

  /** @param statement calls a database function with token hashes. */
  constructor(database: Database, statement: FunctionCall) {
    this.#database = database;
    this.#statement = statement;
    this.#batches = new Batcher((hashes) => this.#findAll(hashes), MAX_BATCH);
  }

  find(token: string): Promise<Row | undefined> {
    return this.#batches.add(tokenHash(token));
  }

  async #findAll(hashes: readonly string[]): Promise<(Row | undefined)[]> {
    const rows = await this.#database.call<Row>(this.#statement, [[...new Set(hashes)]]);
    const found = new Map(rows.map((row) => [row.hash, row]));
    return hashes.map((hash) => found.get(hash));
  }
}

export function activePlan(found: FoundSubscription): Plan | undefined {
  return isPlan(found.plan) && found.subscription_active === true ? found.plan : undefined;
}
