import { isAdminEmail } from '../../src/accounts/accounts/admin.js';
import { entitled, type Entitlement } from '../../src/accounts/accounts/entitlement.js';
import { isPlan } from '../../src/types/plans.js';
import { PaymentRequiredError } from '../../src/lib/errors.js';
import type { CallerOf } from '../auth/authentication.js';
import type { optionalBearer } from '../auth/optional-bearer.js';

/** User id of unidentified callers of the AI API. */
const ANONYMOUS_USER = 'anonymous';

type AiCaller = CallerOf<typeof optionalBearer>;

/**
 * Returns the entitlement of a caller of the AI API; the plan needs an active subscription.
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
 * Returns the entitlement by plan of a caller of the AI API. An API key counts with its owner's own
 * subscription; callers that may speak for others count with the headers they send.
 * @throws PaymentRequiredError `PLAN_REQUIRED`, or `SUBSCRIPTION_REQUIRED` if the subscription has ended.
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
      const admin = email !== undefined && isAdminEmail(email, { adminEmails });
      return entitled(user?.id ?? ANONYMOUS_USER, admin, isPlan(plan) ? plan : undefined);
    }
  }
}

const subscriptionRequired = () =>
  new PaymentRequiredError('An active subscription is required', 'SUBSCRIPTION_REQUIRED');
