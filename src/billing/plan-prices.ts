import {
  isPlan,
  isStoragePlan,
  PLAN_LIMITS,
  PLANS,
  STORAGE_LIMITS,
  STORAGE_PLANS,
  type Plan,
  type StoragePlan,
  type SubscriptionKind,
} from '../types/plans.js';
import type { BillingSettings } from './settings.js';

/** A plan of either kind. */
export type SoldPlan = Plan | StoragePlan;

/** Plans of both kinds; each kind in ascending order. */
export const SOLD_PLANS: readonly SoldPlan[] = [...PLANS, ...STORAGE_PLANS];

export const PLAN_CURRENCY = 'gbp';

export const PLAN_INTERVAL = 'month';

/** A recurring price of the processor. */
export interface RecurringPrice {
  readonly id: string;
  readonly cents: number | null;
  readonly currency: string;
  readonly interval: string | null;
}

/** Returns a plan's price a month in pence. */
export const penceOf = (plan: SoldPlan): number =>
  100 * (isPlan(plan) ? PLAN_LIMITS[plan] : STORAGE_LIMITS[plan]).monthlyPriceGbp;

export const kindOf = (plan: SoldPlan): SubscriptionKind =>
  isStoragePlan(plan) ? 'storage' : 'plan';

/** Reports whether a plan is higher than another one of its kind. */
export const isHigher = (plan: SoldPlan, than: SoldPlan): boolean =>
  SOLD_PLANS.indexOf(plan) > SOLD_PLANS.indexOf(than);

/**
 * Returns the plan of a kind that a price is for: the configured price of a plan, or the plan's own amount in a
 * price that was sent with a checkout. Undefined for any other price, such as one that was configured before.
 */
export function planOfPrice(
  { cents, currency, id, interval }: RecurringPrice,
  kind: SubscriptionKind,
  { planPrices }: Pick<BillingSettings, 'planPrices'>,
): SoldPlan | undefined {
  const plans = SOLD_PLANS.filter((plan) => kindOf(plan) === kind);
  const configured = plans.find((plan) => planPrices[plan] === id);
  if (configured !== undefined) return configured;
  if (currency !== PLAN_CURRENCY || interval !== PLAN_INTERVAL) return undefined;
  return plans.find((plan) => penceOf(plan) === cents);
}
