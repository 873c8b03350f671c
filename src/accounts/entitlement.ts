import type { Database } from '../database/database.js';
import { PaymentRequiredError } from '../errors.js';
import { isAdmin, type AdminRules } from './admin.js';
import type { Plan } from './plans.js';
import { findPlan } from './subscriptions.js';

/** What somebody may use of the AI API. */
export interface Entitlement {
  readonly userId: string;
  /** Whose models are allowed. */
  readonly plan: Plan;
  /** Administrators have the highest plan's models, and no quota. */
  readonly isAdmin: boolean;
}

/**
 * What a user's own plan entitles to.
 *
 * @throws PaymentRequiredError for a user without a plan.
 */
export async function entitlementOf(
  database: Database,
  userId: string,
  rules: AdminRules,
): Promise<Entitlement> {
  const { user, plan } = await database.asUser(userId).transaction(async (db) => ({
    user: await db.User.findByPk(userId),
    plan: await findPlan(db, userId),
  }));
  return entitled(userId, user !== null && isAdmin(user, rules), plan);
}

/** @throws PaymentRequiredError for somebody who has no plan and is no administrator. */
export function entitled(userId: string, admin: boolean, plan: Plan | undefined): Entitlement {
  if (admin) return { userId, plan: 'network', isAdmin: true };
  if (plan === undefined) {
    throw new PaymentRequiredError('A paid plan is required', 'PLAN_REQUIRED');
  }
  return { userId, plan, isAdmin: false };
}
