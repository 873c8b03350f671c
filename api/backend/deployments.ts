import * as z from 'zod';
import { PLANS, isPlan, noPlan } from '../../src/types/plans.js';
import { grantPlan } from '../../src/accounts/accounts/subscriptions.js';
import { NotFoundError } from '../../src/lib/errors.js';
import { internalKey } from '../auth/internal-key.js';
import { area } from '../http/area.js';
import { reply } from '../http/reply.js';
import { tokensOf } from '../views/channels.js';
import { presentCreated } from '../views/backend-agents.js';
import { runHeader } from './answer-operation.js';
import { deployAgent } from './contract.js';
import type { BackendDependencies } from './dependencies.js';
import { requestedBy } from './requested-by.js';

const subscriptions = area({ tag: 'Deployments', auth: internalKey });

/** Creates `POST /api/deployments` and the endpoint that grants plans (spec 4.7). */
export function deploymentEndpoints({ settings, database, deployments }: BackendDependencies) {
  return [
    deployAgent.handledBy(async (request) => {
      const { channels, ...deployment } = request.body;
      const { agent, run } = await deployments.deploy(requestedBy(request), {
        ...deployment,
        channelTokens: channels && tokensOf(channels),
      });
      return reply(201, presentCreated(agent, settings), runHeader(run));
    }),
    subscriptions({
      method: 'POST',
      path: '/api/subscriptions/deploy',
      operationId: 'grantPlan',
      summary: 'Grant a user a plan',
      idempotent: true,
      body: z.object({ userId: z.string().min(1).max(64), plan: z.string() }),
      responses: {
        200: z.strictObject({
          success: z.literal(true),
          userId: z.string(),
          plan: z.enum(PLANS),
          status: z.literal('active'),
        }),
      },
      errors: [402, 404],
      async handler(request) {
        const { body, caller } = request;
        if (!isPlan(body.plan)) throw noPlan(body.plan);
        // A caller that speaks for a user may only change that user's plan.
        if (caller.user && caller.user.id !== body.userId) {
          throw new NotFoundError('User not found');
        }
        await grantPlan(database, body.userId, body.plan, requestedBy(request));
        return reply(200, {
          success: true,
          userId: body.userId,
          plan: body.plan,
          status: 'active',
        });
      },
    }),
  ];
}
