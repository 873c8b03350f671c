import type { Database } from '../database/database.js';
import { isAdmin, type AdminRules } from './admin.js';
import type { Plan } from './plans.js';
import { activePlan, TokenLookup, type FoundSubscription } from './token-lookup.js';

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

interface FoundKey extends FoundSubscription {
  readonly hash: string;
  readonly key_id: string;
  readonly user_id: string;
  readonly email: string;
  readonly is_admin: boolean;
  readonly last_used: Date | null;
}

const FIND = { name: 'find_api_keys', text: 'SELECT * FROM find_api_keys($1)' };

/** Finds users' API keys as calls come with them. */
export class ApiKeyLookup {
  readonly #tokens: TokenLookup<FoundKey>;

  readonly #rules: AdminRules;

  constructor(database: Database, rules: AdminRules) {
    this.#rules = rules;
    this.#tokens = new TokenLookup(database, FIND);
  }

  /** The living key that this token is, with its owner's plan as of now; none when there is none. */
  async find(token: string): Promise<ApiKeyHolder | undefined> {
    const found = await this.#tokens.find(token);
    if (!found) return undefined;
    const { email } = found;
    const plan = activePlan(found);
    return {
      keyId: found.key_id,
      userId: found.user_id,
      email,
      isAdmin: isAdmin({ email, isAdmin: found.is_admin }, this.#rules),
      plan,
      subscription: found.plan === null ? 'none' : plan ? 'active' : 'ended',
      lastUsed: found.last_used,
    };
  }
}
