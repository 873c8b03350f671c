import { isAdminEmail } from '../../src/accounts/accounts/admin.js';
import { entitled, type Entitlement } from '../../src/accounts/accounts/entitlement.js';
import { isPlan } from '../../src/types/plans.js';
import { PaymentRequiredError } from '../../src/lib/errors.js';
import type { CallerOf } from '../auth/authentication.js';
import type { optionalBearer } from '../auth/optional-bearer.js';

/** Who calls the AI API without saying who. */
const ANONYMOUS_USER = 'anonymous';

type AiCaller = CallerOf<typeof optionalBearer>;

/**
 * What a caller of the AI API may use: their plan has to be paid for by a subscription.
 *
 * @throws PaymentRequiredError `PLAN_REQUIRED` or `SUBSCRIPTION_REQUIRED`.
 */
export function aiEntitlement(caller: AiCaller, adminEmails: readonly string[]): Entitlement {
  const found = planEntitlement(caller, adminEmails);
  const speaksForOthers = caller.kind === 'internal' || caller.kind === 'claimed';
  if (speaksForOthers && !found.isAdmin && caller.subscriptionId === undefined) {
    throw subscriptionRequired();
  }
  return found;
}

/**
 * What the plan of a caller of the AI API has. A key's owner is judged by their own subscription,
 * whatever the headers say; whoever may speak for others, by what the headers say of those.
 *
 * @throws PaymentRequiredError `PLAN_REQUIRED`, or `SUBSCRIPTION_REQUIRED` for one that has ended.
 */
export function planEntitlement(caller: AiCaller, adminEmails: readonly string[]): Entitlement {
  switch (caller.kind) {
    case 'anonymous':
      return entitled(ANONYMOUS_USER, false, undefined);
    case 'api-key':
      if (caller.subscription === 'ended' && !caller.isAdmin) throw subscriptionRequired();
      return entitled(caller.userId, caller.isAdmin, caller.plan);
    case 'internal':
    case 'claimed': {
      const { email, plan, user } = caller;
      // The web API says it of each user whether the address is proved.
      const isProved = user?.role !== 'user';
      const admin = email !== undefined && isProved && isAdminEmail(email, { adminEmails });
      return entitled(user?.id ?? ANONYMOUS_USER, admin, isPlan(plan) ? plan : undefined);
    }
  }
}

const subscriptionRequired = () =>
  new PaymentRequiredError('An active subscription is required', 'SUBSCRIPTION_REQUIRED');
