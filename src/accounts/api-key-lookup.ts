import { Batcher } from '../batcher.js';
import type { Database } from '../database/database.js';
import { tokenHash } from '../secrets/token-hash.js';
import { isAdmin, type AdminRules } from './admin.js';
import type { Plan } from './plans.js';

/** A living key and its owner, as calls are judged by them. */
export interface ApiKeyHolder {
  readonly keyId: string;
  readonly userId: string;
  readonly email: string;
  readonly isAdmin: boolean;
  /** The plan that the owner is on now; none without an active subscription. */
  readonly plan: Plan | undefined;
  /** `ended`: there was one, which is cancelled or whose period is over. */
  readonly subscription: 'none' | 'active' | 'ended';
  /** Null until it is used. */
  readonly lastUsed: Date | null;
}

interface FoundKey {
  readonly hash: string;
  readonly key_id: string;
  readonly user_id: string;
  readonly email: string;
  readonly is_admin: boolean;
  readonly plan: Plan | null;
  readonly subscription_active: boolean | null;
  readonly last_used: Date | null;
}

/** Keys in one round trip. */
const MAX_BATCH = 200;

const FIND = { name: 'find_api_keys', text: 'SELECT * FROM find_api_keys($1)' };

/** Finds keys as calls come with them; those that come together, in one round trip. */
export class ApiKeyLookup {
  readonly #batches: Batcher<string, FoundKey | undefined>;

  constructor(
    private readonly database: Database,
    private readonly rules: Pick<AdminRules, 'adminEmails'>,
  ) {
    this.#batches = new Batcher((hashes) => this.#findAll(hashes), MAX_BATCH);
  }

  /**
   * The living key that this token is, with its owner's plan as of now; none when there is no such
   * key. What the token looks like does not matter.
   */
  async find(token: string): Promise<ApiKeyHolder | undefined> {
    const found = await this.#batches.add(tokenHash(token));
    if (!found) return undefined;
    const { email, plan } = found;
    const active = found.subscription_active === true;
    return {
      keyId: found.key_id,
      userId: found.user_id,
      email,
      isAdmin: isAdmin({ email, isAdmin: found.is_admin }, this.rules),
      plan: plan !== null && active ? plan : undefined,
      subscription: plan === null ? 'none' : active ? 'active' : 'ended',
      lastUsed: found.last_used,
    };
  }

  async #findAll(hashes: readonly string[]): Promise<(FoundKey | undefined)[]> {
    const rows = await this.database.callFunction<FoundKey>(FIND, [[...new Set(hashes)]]);
    const found = new Map(rows.map((row) => [row.hash, row]));
    return hashes.map((hash) => found.get(hash));
  }
}
