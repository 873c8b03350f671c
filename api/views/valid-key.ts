import * as z from 'zod';
import type { ApiKeyHolder } from '../../src/accounts/accounts/api-key-lookup.js';
import { FEATURES, planFeatures } from '../../src/accounts/accounts/plan-features.js';
import { PLANS } from '../../src/types/plans.js';

/** What is told of a valid key; to be spread into an answer's schema. */
export const validKey = {
  valid: z.literal(true),
  userId: z.string(),
  plan: z
    .enum(PLANS)
    .nullable()
    .describe('Null without an active subscription; an admin has network'),
  features: z.array(z.enum(FEATURES)).describe('More may come: skip unknown ones'),
};

export function presentValidKey(holder: Pick<ApiKeyHolder, 'isAdmin' | 'plan' | 'userId'>) {
  // Admins have what the highest plan has.
  const plan = holder.isAdmin ? 'network' : holder.plan;
  const { userId } = holder;
  return { valid: true, userId, plan: plan ?? null, features: planFeatures(plan) } as const;
}
