import { webStatus } from '../../src/agents/agents/web-status.js';
import * as z from 'zod';
import { FREE_PLAN, TIERS, webAgentLimit, type Plan } from '../../src/types/plans.js';
import { agentName } from '../../src/agents/model/agent-config.js';
import { choiceOf, shownModel, shownModels } from '../../src/agents/model/agent-model.js';
import { websocketUrlOf } from '../../src/agents/address/agent-address.js';
import { listAgents } from '../../src/agents/agents/agents.js';
import { AGENT_MODELS, requestedModel } from '../../src/agents/model/models.js';
import type { JsonObject } from '../../src/lib/json.js';
import { ServiceError, TooManyRequestsError } from '../../src/lib/errors.js';
import { person, planHolder, planOfPerson } from '../auth/person.js';
import { deployAgent } from '../backend/contract.js';
import { area } from '../http/area.js';
import { errorsOf } from '../http/derived-errors.js';
import { nextPageLink, page } from '../http/pagination.js';
import { reply } from '../http/reply.js';
import type { agentCreated } from '../views/backend-agents.js';
import { agentItem, presentItem } from '../views/web-agents.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';
import { planToProvision } from '../../src/accounts/accounts/plan-to-provision.js';

/** Seconds after which one of the user's agents may have been removed. */
const RETRY_AFTER_S = 60;

export const provisionedAgent = agentItem.omit({ updatedAt: true });

const provisioning = area({
  tag: 'Agents',
  auth: person,
  keyScope: 'agents',
  limit: LIMITS.agents,
});

/** Creates `GET|POST /api/agents/provision` (spec 4.7). */
export function provisionEndpoints({ ai, backend, settings }: WebDependencies) {
  return [
    provisioning({
      method: 'GET',
      path: '/api/agents/provision',
      operationId: 'listProvisionedAgents',
      summary: 'List your provisioned agents',
      query: z.object(page),
      responses: {
        200: z.strictObject({ success: z.literal(true), agents: z.array(provisionedAgent) }),
      },
      async handler({ caller, query, tenant }) {
        const { items, next } = await listAgents(tenant, {
          limit: query.limit,
          after: query.cursor,
        });
        const modelOf = shownModels(ai.router, planOfPerson(caller));
        const agents = items.map((agent) =>
          provisionedAgent.strip().parse(presentItem(agent, modelOf(agent), settings)),
        );
        const link = nextPageLink('/api/agents/provision', query, next);
        return reply(200, { success: true, agents }, link);
      },
    }),
    provisioning({
      method: 'POST',
      path: '/api/agents/provision',
      operationId: 'provisionAgent',
      summary: 'Provision an agent; it is created at once and starts in the background',
      idempotent: true,
      body: z.object({
        name: agentName,
        model: z.enum(AGENT_MODELS).optional(),
        config: z.record(z.string(), z.unknown()).optional(),
        // Spec 5: the free plan must pass validation, to be rejected with the status for a missing plan.
        tier: z
          .enum([...TIERS, FREE_PLAN], { error: `tier must be one of ${TIERS.join(', ')}` })
          .optional(),
      }),
      responses: { 201: z.strictObject({ success: z.literal(true), agent: provisionedAgent }) },
      errors: [...errorsOf(deployAgent), 403, 429],
      async handler(request) {
        const { body, caller } = request;
        const plan = planToProvision(planHolder(caller), body.tier);
        const made = await asAgentLimit(() =>
          backend.call(request, deployAgent, {
            body: {
              name: body.name,
              model: body.model,
              config: body.config,
              plan,
              ...(!caller.user.isAdmin && { agentLimit: webAgentLimit(caller.plan) }),
            },
            storesResponse: true,
          }),
        );
        const agent = presentProvisioned({ ai, settings }, made, body, planOfPerson(caller));
        return reply(201, { success: true, agent });
      },
    }),
  ];
}

/** Returns a new agent, whose model follows from its request. */
export function presentProvisioned(
  { ai, settings }: Pick<WebDependencies, 'ai' | 'settings'>,
  made: z.output<typeof agentCreated>,
  requested: { readonly model?: string | undefined; readonly config?: JsonObject | undefined },
  plan: Plan | undefined,
): z.input<typeof provisionedAgent> {
  const model = requestedModel(requested, settings.ai.provider);
  const choice = choiceOf({ ...model, config: { ...requested.config } });
  return {
    id: made.id,
    name: made.name,
    model: shownModel(ai.router, choice, plan),
    status: webStatus(made.status),
    websocketUrl: websocketUrlOf(made.url),
    createdAt: made.createdAt,
  };
}

/** Converts the backend's 402 for the agent limit to 429 (spec 4.7). */
export async function asAgentLimit<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'AGENT_LIMIT_REACHED') {
      const max = Number(error.facts.limit);
      throw new TooManyRequestsError(
        'Agent limit reached',
        { max, resetS: RETRY_AFTER_S },
        error.code,
        error.facts,
      );
    }
    throw error;
  }
}
