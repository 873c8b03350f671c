import type { AdminRules } from '../../accounts/accounts/admin.js';
import { findEntitlement } from '../../accounts/accounts/entitlement.js';
import { PLAN_LIMITS, planRequired } from '../../types/plans.js';
import type { TenantTransaction } from '../../platform/database/database.js';
import { NotFoundError } from '../../lib/errors.js';
import { wantedModel, type AgentModelChoice } from './agent-model.js';
import { checkSkillLimit } from './agent-skills.js';

/** What of a new agent its owner's plan is asked about. */
interface Judged {
  /** A narrower cap than the plan's own. */
  readonly agentLimit?: number | undefined;
  readonly choice: AgentModelChoice;
  readonly config: Readonly<Record<string, unknown>>;
}

/**
 * How many agents somebody may have, this one included. Administrators and the operator have no cap;
 * everybody else that of their plan.
 *
 * @throws PaymentRequiredError without a plan, or for more skills than it has; ModelRestrictedError,
 *   NotFoundError
 */
export async function agentCap(
  db: TenantTransaction,
  userId: string,
  rules: AdminRules,
  { agentLimit = Number.POSITIVE_INFINITY, choice, config }: Judged,
): Promise<number> {
  const entitlement = await findEntitlement(db, userId, rules);
  if (!entitlement) {
    if (await db.User.findByPk(userId)) throw planRequired();
    throw new NotFoundError('User not found');
  }
  const { isAdmin, plan } = entitlement;
  wantedModel(choice, plan);
  checkSkillLimit(config, entitlement);
  return isAdmin ? Number.POSITIVE_INFINITY : Math.min(PLAN_LIMITS[plan].agents, agentLimit);
}
