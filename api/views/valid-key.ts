import * as z from 'zod';
import type { ApiKeyHolder } from '../../src/accounts/accounts/api-key-lookup.js';
import { FEATURES, planFeatures } from '../../src/accounts/accounts/plan-features.js';
import { KEY_SCOPES } from '../../src/types/key-scopes.js';
import { PLANS } from '../../src/types/plans.js';

/** The answer for a valid key, to be spread into an answer's schema. */
export const validKey = {
  valid: z.literal(true),
  userId: z.string(),
  scopes: z.array(z.enum(KEY_SCOPES)),
  plan: z
    .enum(PLANS)
    .nullable()
    .describe('Null without an active subscription; `network` for an admin'),
  features: z
    .array(z.enum(FEATURES))
    .describe('Features of the plan; clients must ignore unknown values'),
};

export function presentValidKey(
  holder: Pick<ApiKeyHolder, 'isAdmin' | 'plan' | 'scopes' | 'userId'>,
) {
  // Admins get the features of the highest plan.
  const plan = holder.isAdmin ? 'network' : holder.plan;
  const { scopes, userId } = holder;
  const features = planFeatures(plan);
  return { valid: true, userId, scopes, plan: plan ?? null, features } as const;
}
