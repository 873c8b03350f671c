import type { Logger } from 'pino';
import type { Database } from '../../platform/database/database.js';
import { isAdmin, type AdminRules } from './admin.js';
import { prefixOf } from './api-keys.js';
import { LastUses } from './last-uses.js';
import type { Plan } from '../../types/plans.js';
import {
  activePlan,
  TokenLookup,
  type FoundSubscription,
} from '../../platform/secrets/token-lookup.js';

/** A living key and its owner, as calls are judged by them. */
export interface ApiKeyHolder {
  readonly keyId: string;
  readonly userId: string;
  readonly name: string;
  readonly email: string;
  readonly isAdmin: boolean;
  /** The plan that the owner is on now; none without an active subscription. */
  readonly plan: Plan | undefined;
  /** `ended`: there was one, which is cancelled or whose period is over. */
  readonly subscription: 'none' | 'active' | 'ended';
  /** Null until it is used. */
  readonly lastUsed: Date | null;
}

/** A key as the functions of the database find it. */
export interface FoundKey extends FoundSubscription {
  readonly hash: string;
  readonly key_id: string;
  readonly user_id: string;
  readonly name: string;
  readonly email: string;
  readonly email_verified: boolean;
  readonly is_admin: boolean;
  readonly last_used: Date | null;
}

const FIND = { name: 'find_key_holders', text: 'SELECT * FROM find_key_holders($1)' };

/** Finds users' API keys as calls come with them, and notes that they were used. */
export class ApiKeyLookup {
  readonly #tokens: TokenLookup<FoundKey>;
  readonly #uses: LastUses;
  readonly #rules: AdminRules;

  constructor(database: Database, rules: AdminRules, log: Logger) {
    this.#rules = rules;
    this.#tokens = new TokenLookup(database, FIND);
    this.#uses = new LastUses('API key', database, log);
  }

  /** The living key that this token is, with its owner's plan as of now; none when there is none. */
  async find(token: string): Promise<ApiKeyHolder | undefined> {
    const found = await this.#tokens.find(token);
    return found && usedBy(found, { token, uses: this.#uses, rules: this.#rules });
  }
}

/** Notes that a key is used. @returns it with its owner. */
export function usedBy(
  found: FoundKey,
  { token, uses, rules }: { token: string; uses: LastUses; rules: AdminRules },
): ApiKeyHolder {
  const { key_id: keyId, user_id: userId, name, email, last_used: lastUsed } = found;
  uses.note({ id: keyId, userId, lastUsed }, { prefix: prefixOf(token) });
  const plan = activePlan(found);
  const judged = { email, emailVerified: found.email_verified, isAdmin: found.is_admin };
  return {
    ...{ keyId, userId, name, email, plan, lastUsed },
    isAdmin: isAdmin(judged, rules),
    subscription: found.plan === null ? 'none' : plan ? 'active' : 'ended',
  };
}
