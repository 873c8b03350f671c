import { PaymentRequiredError } from '../../lib/errors.js';
import { FREE_PLAN, planRequired, type Plan } from '../../types/plans.js';
import { requirePlanWithin } from './require-plan-within.js';

/**
 * Returns the plan of a user's new agent: the requested one, or the subscribed one.
 * @throws PaymentRequiredError without a subscription, or beyond it
 */
export function planToProvision(
  { plan: subscribed, isAdmin }: { readonly plan: Plan | undefined; readonly isAdmin: boolean },
  requested: string | undefined,
): string | undefined {
  if (!subscribed && !isAdmin) {
    throw new PaymentRequiredError('Active subscription required', 'SUBSCRIPTION_REQUIRED');
  }
  if (requested === FREE_PLAN) throw planRequired();
  if (requested !== undefined && !isAdmin) requirePlanWithin(requested, subscribed);
  return requested ?? subscribed;
}
