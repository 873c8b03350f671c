import { hasQuota, type Plan } from '../../types/plans.js';

/** What a program may switch on for a user, by their plan. More may come: skip unknown ones. */
export const FEATURES = ['agents', 'chat', 'ai', 'all-models', 'unlimited-tokens'] as const;

export type Feature = (typeof FEATURES)[number];

/**
 * The features of a plan, as an entitlement list: names that are there or not, with no amounts.
 * Every plan opens `agents` (deploy and run them), `chat` (talk to them) and `ai` (the AI API);
 * `all-models` and `unlimited-tokens` say that no list of models and no monthly quota binds it.
 * Nothing without a plan.
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
