import type { Logger } from 'pino';
import type { Database } from '../../platform/database/database.js';
import { isAdmin, type AdminRules } from './admin.js';
import { prefixOf } from './api-keys.js';
import { LastUses } from './last-uses.js';
import type { KeyScope } from '../../types/key-scopes.js';
import type { Plan } from '../../types/plans.js';
import type { SealedOwnKeys } from '../../types/sealed-own-keys.js';
import {
  activePlan,
  TokenLookup,
  type FoundOwnKeys,
  type FoundSubscription,
} from '../../platform/secrets/token-lookup.js';

/** A valid key and its owner, as needed to authorize a call. */
export interface ApiKeyHolder {
  readonly keyId: string;
  readonly scopes: readonly KeyScope[];
  readonly userId: string;
  readonly name: string;
  readonly email: string;
  readonly isAdmin: boolean;
  /** The owner's current plan; undefined without an active subscription. */
  readonly plan: Plan | undefined;
  /** `ended`: the subscription is cancelled or its period is over. */
  readonly subscription: 'none' | 'active' | 'ended';
  /** Null before the first use. */
  readonly lastUsed: Date | null;
}

/** A key's owner who calls, with the owner's own keys of AI providers. */
export interface CallingKeyHolder extends ApiKeyHolder {
  readonly ownKeys?: SealedOwnKeys | undefined;
}

/** A key as returned by the database functions. */
export interface FoundKey extends FoundSubscription {
  readonly hash: string;
  readonly key_id: string;
  readonly scopes: readonly KeyScope[];
  readonly user_id: string;
  readonly name: string;
  readonly email: string;
  readonly email_verified: boolean;
  readonly is_admin: boolean;
  readonly last_used: Date | null;
}

const FIND = { name: 'find_key_callers', text: 'SELECT * FROM find_key_callers($1)' };

export class ApiKeyLookup {
  readonly #tokens: TokenLookup<FoundKey & FoundOwnKeys>;
  readonly #uses: LastUses;
  readonly #rules: AdminRules;

  constructor(database: Database, rules: AdminRules, log: Logger) {
    this.#rules = rules;
    this.#tokens = new TokenLookup(database, FIND);
    this.#uses = new LastUses('API key', database, log);
  }

  /** Finds the valid key for this token, with its owner's current plan; undefined when no such key exists. */
  async find(token: string): Promise<CallingKeyHolder | undefined> {
    const found = await this.#tokens.find(token);
    if (!found) return undefined;
    const holder = recordKeyUse(found, { token, uses: this.#uses, rules: this.#rules });
    return { ...holder, ownKeys: found.own_keys ?? undefined };
  }
}

/** Records a use of the key. @returns the key with its owner. */
export function recordKeyUse(
  found: FoundKey,
  { token, uses, rules }: { token: string; uses: LastUses; rules: AdminRules },
): ApiKeyHolder {
  const { key_id: keyId, user_id: userId, name, email, scopes, last_used: lastUsed } = found;
  uses.record({ id: keyId, userId, lastUsed }, { prefix: prefixOf(token) });
  const plan = activePlan(found);
  const judged = { email, emailVerified: found.email_verified, isAdmin: found.is_admin };
  return {
    keyId,
    scopes,
    userId,
    name,
    email,
    plan,
    lastUsed,
    isAdmin: isAdmin(judged, rules),
    subscription: found.plan === null ? 'none' : plan ? 'active' : 'ended',
  };
}
