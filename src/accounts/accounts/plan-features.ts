import { hasQuota, type Plan } from '../../types/plans.js';

/** Features that a program may enable for a user, by their plan. Skip unknown ones: more may be added. */
export const FEATURES = ['agents', 'chat', 'ai', 'all-models', 'unlimited-tokens'] as const;

export type Feature = (typeof FEATURES)[number];

/**
 * Returns the features of a plan, an empty list without a plan. Every plan includes `agents` (deploy and
 * run), `chat` (talk to agents) and `ai` (the AI API); `all-models` means no model list and
 * `unlimited-tokens` no monthly quota.
 */
export function planFeatures(plan: Plan | undefined): readonly Feature[] {
  if (plan === undefined) return [];
  const features: Feature[] = ['agents', 'chat', 'ai'];
  if (plan === 'network') features.push('all-models');
  if (!hasQuota(plan)) {
    features.push('unlimited-tokens');
  }
  return features;
}
