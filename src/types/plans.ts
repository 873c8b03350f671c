import { BadRequestError, PaymentRequiredError, type ServiceError } from '../lib/errors.js';

/** The subscription plans, in ascending order. */
export const PLANS = ['label', 'solo', 'collective', 'network'] as const;

export type Plan = (typeof PLANS)[number];

/** The plans that add disk space, in ascending order. */
export const STORAGE_PLANS = ['10gb', '50gb', '200gb'] as const;

export type StoragePlan = (typeof STORAGE_PLANS)[number];

export type SubscriptionKind = 'plan' | 'storage';

/** The deprecated name for having no plan. */
export const FREE_PLAN = 'free';

export interface PlanLimits {
  /** Pounds sterling a month. */
  readonly monthlyPriceGbp: number;
  /** Agents that exist at one time, as the backend's plan check counts them. */
  readonly agents: number;
  readonly skills: number;
  readonly agentMessagesPerDay: number;
  /** Tokens per calendar month. */
  readonly monthlyTokens: number;
}

const UNLIMITED = Number.POSITIVE_INFINITY;

export const PLAN_LIMITS: Readonly<Record<Plan, PlanLimits>> = {
  label: {
    monthlyPriceGbp: 29,
    agents: 1,
    skills: 3,
    agentMessagesPerDay: 100,
    monthlyTokens: 20_000_000,
  },
  solo: {
    monthlyPriceGbp: 79,
    agents: 3,
    skills: 10,
    agentMessagesPerDay: 500,
    monthlyTokens: 2_000_000,
  },
  collective: {
    monthlyPriceGbp: 199,
    agents: 10,
    skills: 25,
    agentMessagesPerDay: 2_000,
    monthlyTokens: 6_000_000,
  },
  network: {
    monthlyPriceGbp: 499,
    agents: 100,
    skills: 100,
    agentMessagesPerDay: 10_000,
    monthlyTokens: UNLIMITED,
  },
};

const GIB = 1024 ** 3;

interface StorageLimits {
  /** Pounds sterling a month. */
  readonly monthlyPriceGbp: number;
  /** Bytes that each memory of the owner gets beyond `AGENT_DISK_LIMIT`. */
  readonly bytes: number;
}

export const STORAGE_LIMITS: Readonly<Record<StoragePlan, StorageLimits>> = {
  '10gb': { monthlyPriceGbp: 2, bytes: 10 * GIB },
  '50gb': { monthlyPriceGbp: 8, bytes: 50 * GIB },
  '200gb': { monthlyPriceGbp: 25, bytes: 200 * GIB },
};

/** Reports whether a plan has a quota. No plan means an administrator, who has no quota. */
export function hasQuota(plan: Plan | undefined): plan is Plan {
  return plan !== undefined && Number.isFinite(PLAN_LIMITS[plan].monthlyTokens);
}

/** The web API's names for plans when provisioning, in ascending order. */
export const TIERS = ['starter', 'pro', 'enterprise'] as const;

export type Tier = (typeof TIERS)[number];

const TIER_OF_PLAN: Readonly<Record<Plan, Tier | undefined>> = {
  label: undefined,
  solo: 'starter',
  collective: 'pro',
  network: 'enterprise',
};

const PLAN_OF_TIER: Readonly<Record<Tier, Plan>> = {
  starter: 'solo',
  pro: 'collective',
  enterprise: 'network',
};

const TIER_AGENTS: Readonly<Record<Tier, number>> = { starter: 1, pro: 3, enterprise: 100 };

/** Agents that the web API's provisioning allows on a plan without a tier. */
const UNKNOWN_TIER_AGENTS = 1;

export function isPlan(value: string | null | undefined): value is Plan {
  return PLANS.some((plan) => plan === value);
}

export function isStoragePlan(value: string | null | undefined): value is StoragePlan {
  return STORAGE_PLANS.some((plan) => plan === value);
}

export function isTier(value: string | null | undefined): value is Tier {
  return value !== null && value !== undefined && Object.hasOwn(PLAN_OF_TIER, value);
}

/** Returns the plan of a plan's or tier's name; undefined for `free` (deprecated) and others. */
export function parsePlan(name: string | null | undefined): Plan | undefined {
  if (isPlan(name)) return name;
  return isTier(name) ? PLAN_OF_TIER[name] : undefined;
}

/** Returns a named plan. @throws PaymentRequiredError for `free`, BadRequestError if unknown */
export function requirePlan(name: string): Plan {
  const plan = parsePlan(name);
  if (!plan) throw noPlan(name);
  return plan;
}

/** Returns the error for a name that is no plan's: 402 for the free one (spec 5), otherwise 400. */
export function noPlan(name: string): ServiceError {
  if (name === FREE_PLAN) return planRequired();
  return new BadRequestError(`plan must be one of ${PLANS.join(', ')}`);
}

/** Returns the 402 of spec 7: the user has no plan, or no longer has one. */
export const planRequired = (): PaymentRequiredError =>
  new PaymentRequiredError('A paid plan is required', 'PLAN_REQUIRED');

/** Returns how many agents the web API's provisioning allows on a plan (spec 8, by tier). */
export function webAgentLimit(plan: Plan | undefined): number {
  const tier = plan && TIER_OF_PLAN[plan];
  return tier ? TIER_AGENTS[tier] : UNKNOWN_TIER_AGENTS;
}

/** Maximum number of agents for provisioning with channels (spec 8), in place of the plan's own number. */
const CHANNEL_AGENTS: Readonly<Record<Plan, number>> = {
  label: 10,
  solo: 1,
  collective: 3,
  network: UNLIMITED,
};

/** Returns how many agents provisioning with channels allows on a plan; undefined without a limit. */
export function channelAgentLimit(plan: Plan): number | undefined {
  const limit = CHANNEL_AGENTS[plan];
  return Number.isFinite(limit) ? limit : undefined;
}
