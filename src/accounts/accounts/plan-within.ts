import { PaymentRequiredError } from '../../lib/errors.js';
import { requirePlan, type Plan } from '../../types/plans.js';

/** What each plan includes grows in this order (spec 2; by agents, network above all). */
const RANK: Record<Plan, number> = { label: 0, solo: 1, collective: 2, network: 3 };

/**
 * The plan that a name means, if what the user pays for includes it.
 *
 * @throws BadRequestError for a name that is none, PaymentRequiredError beyond the subscription.
 */
export function planWithin(name: string, subscribed: Plan | undefined): Plan {
  const plan = requirePlan(name);
  if (!subscribed || RANK[plan] > RANK[subscribed]) {
    throw new PaymentRequiredError(`The plan ${plan} needs a subscription`, 'PLAN_REQUIRED');
  }
  return plan;
}
