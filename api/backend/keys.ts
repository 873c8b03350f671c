import { z } from 'zod';
import { FEATURES, planFeatures } from '../../src/accounts/plan-features.js';
import { PLANS } from '../../src/accounts/plans.js';
import { apiKey } from '../auth/api-key.js';
import { endpoint } from '../http/endpoint.js';
import { reply } from '../http/reply.js';

/** `POST /api/validate-key` (spec 4.5): whose a key is, for services that are shown one. */
export function keyEndpoints() {
  return [
    endpoint({
      method: 'POST',
      path: '/api/validate-key',
      summary: 'Whose an API key is, and what it opens',
      tag: 'API keys',
      auth: apiKey,
      responses: {
        200: z.strictObject({
          valid: z.literal(true),
          userId: z.string(),
          plan: z
            .enum(PLANS)
            .nullable()
            .describe('Null without an active subscription; an admin has network'),
          features: z.array(z.enum(FEATURES)).describe('More may come: skip unknown ones'),
        }),
      },
      handler({ caller }) {
        // Admins have what the highest plan has.
        const plan = caller.isAdmin ? 'network' : caller.plan;
        const { userId } = caller;
        const features = planFeatures(plan);
        return reply(
          200,
          { valid: true, userId, plan: plan ?? null, features },
          { 'Cache-Control': 'no-store' },
        );
      },
    }),
  ];
}
