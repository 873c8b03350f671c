import type { ModelSet } from '../../ai/models/model-set.js';
import type { AdminRules } from '../../accounts/accounts/admin.js';
import { findEntitlement } from '../../accounts/accounts/entitlement.js';
import { PLAN_LIMITS, planRequired } from '../../types/plans.js';
import type { TenantTransaction } from '../../platform/database/database.js';
import { NotFoundError } from '../../lib/errors.js';
import { requestedModelOf, type AgentModelChoice } from './agent-model.js';
import { checkSkillLimit } from './agent-skills.js';

const UNLIMITED = Number.POSITIVE_INFINITY;

interface Judged {
  readonly models: ModelSet;
  readonly agentLimit?: number | undefined;
  /** A cap in place of the plan's and of `agentLimit`; null for none. */
  readonly agentCap?: number | null | undefined;
  readonly choice: AgentModelChoice;
  readonly config: Readonly<Record<string, unknown>>;
}

/**
 * Returns the user's agent limit; infinite for administrators and the operator.
 * @throws PaymentRequiredError without a plan; ModelRestrictedError, NotFoundError, TooManyRequestsError
 */
export async function agentCap(
  db: TenantTransaction,
  userId: string,
  rules: AdminRules,
  { agentCap: ownCap, agentLimit = UNLIMITED, choice, config, models }: Judged,
): Promise<number> {
  const entitlement = await findEntitlement(db, userId, rules);
  if (!entitlement) {
    if (await db.User.findByPk(userId)) throw planRequired();
    throw new NotFoundError('User not found');
  }
  const { isAdmin, plan } = entitlement;
  requestedModelOf(models, choice, plan);
  checkSkillLimit(config, entitlement);
  if (isAdmin) return UNLIMITED;
  return ownCap === undefined
    ? Math.min(PLAN_LIMITS[plan].agents, agentLimit)
    : (ownCap ?? UNLIMITED);
}
