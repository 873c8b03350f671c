import { PaymentRequiredError } from '../../lib/errors.js';
import { requirePlan, type Plan } from '../../types/plans.js';

/** Rank of each plan: a higher plan includes the lower ones (spec 2; by agents, network is highest). */
const RANK: Record<Plan, number> = { label: 0, solo: 1, collective: 2, network: 3 };

/** Returns the named plan. @throws BadRequestError if unknown, PaymentRequiredError beyond the subscription */
export function requirePlanWithin(name: string, subscribed: Plan | undefined): Plan {
  const plan = requirePlan(name);
  if (!subscribed || RANK[plan] > RANK[subscribed]) {
    throw new PaymentRequiredError(`The plan ${plan} needs a subscription`, 'PLAN_REQUIRED');
  }
  return plan;
}
