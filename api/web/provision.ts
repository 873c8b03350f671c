import { z } from 'zod';
import { webAgentLimit } from '../../src/accounts/plans.js';
import { websocketUrlOf } from '../../src/agents/agent-address.js';
import { listAgents } from '../../src/agents/agents.js';
import { AGENT_MODELS, DEFAULT_MODEL } from '../../src/agents/models.js';
import { PaymentRequiredError, ServiceError, TooManyRequestsError } from '../../src/errors.js';
import { session } from '../auth/session.js';
import { deployAgent } from '../backend/contract.js';
import { area } from '../http/area.js';
import { nextPageLink, page } from '../http/pagination.js';
import { reply } from '../http/reply.js';
import { agentItem, presentItem, webStatus } from '../views/web-agents.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';
import { planWithin } from '../../src/accounts/plan-within.js';

const provisioned = agentItem.omit({ updatedAt: true });

const provisioning = area({ tag: 'Agents', auth: session, limit: LIMITS.agents });

/** `GET|POST /api/agents/provision` (spec 4.7). */
export function provisionEndpoints({ backend, settings }: WebDependencies) {
  return [
    provisioning({
      method: 'GET',
      path: '/api/agents/provision',
      summary: 'List your provisioned agents',
      query: z.object(page),
      responses: {
        200: z.strictObject({ success: z.literal(true), agents: z.array(provisioned) }),
      },
      async handler({ query, tenant }) {
        const { items, next } = await listAgents(tenant, {
          limit: query.limit,
          after: query.cursor,
        });
        const agents = items.map((agent) =>
          provisioned.strip().parse(presentItem(agent, settings.agents)),
        );
        const link = nextPageLink('/api/agents/provision', query, next);
        return reply(200, { success: true, agents }, link);
      },
    }),
    provisioning({
      method: 'POST',
      path: '/api/agents/provision',
      summary: 'Provision an agent; it is created at once and comes up in the background',
      idempotent: true,
      body: z.object({
        name: z.string().trim().min(1).max(64),
        model: z.enum(AGENT_MODELS).optional(),
        config: z.record(z.string(), z.unknown()).optional(),
        tier: z.string().max(20).optional(),
      }),
      responses: { 201: z.strictObject({ success: z.literal(true), agent: provisioned }) },
      errors: [402, 409, 429, 502, 503],
      async handler(request) {
        const { body, caller } = request;
        const subscribed = caller.plan;
        const { isAdmin } = caller.user;
        if (!subscribed && !isAdmin) {
          throw new PaymentRequiredError('Active subscription required', 'SUBSCRIPTION_REQUIRED');
        }
        if (body.tier !== undefined && !isAdmin) planWithin(body.tier, subscribed);
        const made = await asAgentLimit(() =>
          backend.call(request, deployAgent, {
            body: {
              name: body.name,
              model: body.model,
              config: body.config,
              plan: body.tier ?? subscribed,
              ...(!isAdmin && { agentLimit: webAgentLimit(subscribed) }),
            },
            keepsAnswer: true,
          }),
        );
        const agent = {
          id: made.id,
          name: made.name,
          model: body.model ?? DEFAULT_MODEL,
          status: webStatus(made.status),
          websocketUrl: websocketUrlOf(made.url),
          createdAt: made.createdAt,
        };
        return reply(201, { success: true, agent });
      },
    }),
  ];
}

/** Spec 4.7: the cap that the backend tells with 402 is a 429 here. */
async function asAgentLimit<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'AGENT_LIMIT_REACHED') {
      throw new TooManyRequestsError('Agent limit reached', error.code, error.facts);
    }
    throw error;
  }
}
