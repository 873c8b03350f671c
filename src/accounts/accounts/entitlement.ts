import type { Statements } from '../../platform/database/database.js';
import { isAdmin, type AdminRules, type AdminAttributes } from './admin.js';
import { planRequired, type Plan } from '../../types/plans.js';

export interface Entitlement {
  readonly userId: string;
  readonly plan: Plan;
  /** True for administrators, who have the highest plan's models and no quota. */
  readonly isAdmin: boolean;
}

/** Returns the rights of a user's own plan; undefined without a plan or for an unknown user. */
export async function findEntitlement(
  db: Statements,
  userId: string,
  rules: AdminRules,
): Promise<Entitlement | undefined> {
  const [found] = await db.query<AdminAttributes & { readonly plan: Plan | null }>(
    `SELECT u.email, u.email_verified_at IS NOT NULL AS "emailVerified", u.is_admin AS "isAdmin", p.plan
       FROM users u
       LEFT JOIN LATERAL current_subscription(u.id, 'plan') p ON p.holds
      WHERE u.id = $userId`,
    { userId },
  );
  return found && entitlementBy(userId, isAdmin(found, rules), found.plan ?? undefined);
}

/** Returns the rights of a plan. @throws PaymentRequiredError without a plan, except for administrators */
export function entitled(userId: string, admin: boolean, plan: Plan | undefined): Entitlement {
  const entitlement = entitlementBy(userId, admin, plan);
  if (entitlement === undefined) throw planRequired();
  return entitlement;
}

function entitlementBy(
  userId: string,
  admin: boolean,
  plan: Plan | undefined,
): Entitlement | undefined {
  if (admin) return { userId, plan: 'network', isAdmin: true };
  return plan && { userId, plan, isAdmin: false };
}
