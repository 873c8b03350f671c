import { isAdmin, type AdminRules } from '../../accounts/accounts/admin.js';
import type { Plan } from '../../types/plans.js';
import type { SealedOwnKeys } from '../../types/sealed-own-keys.js';
import {
  activePlan,
  TokenLookup,
  type FoundOwnKeys,
  type FoundSubscription,
} from '../../platform/secrets/token-lookup.js';
import type { Database } from '../../platform/database/database.js';

export interface CallingAgent {
  readonly agentId: string;
  readonly model: string;
  readonly aiProvider: string;
  /** The model in `config.model`, used only for `custom`. */
  readonly ownModel: string | undefined;
  readonly userId: string;
  readonly isAdmin: boolean;
  /** The owner's current plan; undefined without an active subscription. */
  readonly plan: Plan | undefined;
  /** The owner's own keys of AI providers. */
  readonly ownKeys?: SealedOwnKeys | undefined;
}

interface FoundAgent extends FoundSubscription, FoundOwnKeys {
  readonly hash: string;
  readonly agent_id: string;
  readonly model: string;
  readonly ai_provider: string;
  readonly own_model: string | null;
  readonly user_id: string;
  readonly email: string;
  readonly email_verified: boolean;
  readonly is_admin: boolean;
}

const FIND = { name: 'find_agent_callers', text: 'SELECT * FROM find_agent_callers($1)' };

export class AgentCallerLookup {
  readonly #tokens: TokenLookup<FoundAgent>;

  readonly #rules: AdminRules;

  constructor(database: Database, rules: AdminRules) {
    this.#rules = rules;
    this.#tokens = new TokenLookup(database, FIND);
  }

  /** Finds the agent that holds this token; undefined for an unknown token, or an agent being removed. */
  async find(token: string): Promise<CallingAgent | undefined> {
    const found = await this.#tokens.find(token);
    if (!found) return undefined;
    const { email, email_verified: emailVerified, is_admin: admin } = found;
    return {
      agentId: found.agent_id,
      model: found.model,
      aiProvider: found.ai_provider,
      ownModel: found.own_model ?? undefined,
      userId: found.user_id,
      isAdmin: isAdmin({ email, emailVerified, isAdmin: admin }, this.#rules),
      plan: activePlan(found),
      ownKeys: found.own_keys ?? undefined,
    };
  }
}
