import { isAdmin } from '../../src/accounts/admin.js';
import { entitled, type Entitlement } from '../../src/accounts/entitlement.js';
import { isPlan } from '../../src/accounts/plans.js';
import { PaymentRequiredError } from '../../src/errors.js';
import type { CallerOf } from '../auth/authentication.js';
import type { optionalBearer } from '../auth/optional-bearer.js';

/** Who calls the AI API without saying who. */
const ANONYMOUS_USER = 'anonymous';

/**
 * What a caller of the AI API may use. A key's owner is judged by their own subscription, whatever
 * the headers say; whoever may speak for others, by what the headers say of those.
 *
 * @throws PaymentRequiredError `PLAN_REQUIRED` or `SUBSCRIPTION_REQUIRED`.
 */
export function aiEntitlement(
  caller: CallerOf<typeof optionalBearer>,
  adminEmails: readonly string[],
): Entitlement {
  switch (caller.kind) {
    case 'anonymous':
      return entitled(ANONYMOUS_USER, false, undefined);
    case 'api-key':
      if (caller.subscription === 'ended' && !caller.isAdmin) throw subscriptionRequired();
      return entitled(caller.userId, caller.isAdmin, caller.plan);
    case 'internal':
    case 'claimed': {
      const { email, plan, subscriptionId, user } = caller;
      const admin = email !== undefined && isAdmin({ email, isAdmin: false }, { adminEmails });
      const found = entitled(user?.id ?? ANONYMOUS_USER, admin, isPlan(plan) ? plan : undefined);
      if (!admin && subscriptionId === undefined) throw subscriptionRequired();
      return found;
    }
  }
}

const subscriptionRequired = () =>
  new PaymentRequiredError('An active subscription is required', 'SUBSCRIPTION_REQUIRED');
