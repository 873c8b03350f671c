import type { AdminRules } from '../../accounts/accounts/admin.js';
import { findEntitlement } from '../../accounts/accounts/entitlement.js';
import type { LocalSizes, ModelEntry } from '../../ai/models/model-set.js';
import type { Router } from '../../ai/routing/route.js';
import type { TenantDatabase } from '../../platform/database/database.js';
import type { AgentRow } from '../../platform/database/models.js';
import { choiceOf, firstAttempt } from './agent-model.js';

/** Tokens of the prompt with which the runtime begins every conversation. */
const PROMPT_TOKENS = 15_000;

/** Returns a sentence about a local model that agents cannot use: without tools, or with a small context. */
export function agentModelFault({
  id,
  localSizes,
  takesTools,
}: Pick<ModelEntry, 'id' | 'localSizes' | 'takesTools'>): string | undefined {
  if (takesTools === false) {
    return `The model ${id} cannot use tools, which agents need: choose another model.`;
  }
  if (!localSizes || localSizes.contextWindow >= PROMPT_TOKENS) return undefined;
  return (
    `The context of ${id} is too small for agents: it has ${localSizes.contextWindow} tokens, and their ` +
    `prompt about ${PROMPT_TOKENS}. Raise it on the model's server, or choose another model.`
  );
}

/** The sizes of the models that agents use, for their runtime's configuration. */
export class AgentModelSizes {
  readonly #router: Router;
  readonly #accounts: AdminRules;

  constructor(router: Router, accounts: AdminRules) {
    this.#router = router;
    this.#accounts = accounts;
  }

  /** Returns the sizes of the agent's model; undefined unless the model is local and its sizes are known. */
  async of(tenant: TenantDatabase, agent: AgentRow): Promise<LocalSizes | undefined> {
    const entitlement = await findEntitlement(tenant, agent.userId, this.#accounts);
    const first = entitlement && firstAttempt(this.#router, choiceOf(agent), entitlement.plan);
    return first?.entry?.localSizes;
  }
}
