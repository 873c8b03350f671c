import * as z from 'zod';
import { planToProvision } from '../../src/accounts/accounts/plan-to-provision.js';
import { agentName } from '../../src/agents/model/agent-config.js';
import { AGENT_MODELS } from '../../src/agents/model/models.js';
import { CHANNEL_NAMES } from '../../src/docker/containers/openclaw-channels.js';
import { channelAgentLimit, FREE_PLAN, PLANS } from '../../src/types/plans.js';
import { person, planHolder, planOfPerson } from '../auth/person.js';
import { deployAgent } from '../backend/contract.js';
import { area } from '../http/area.js';
import { errorsOf } from '../http/derived-errors.js';
import { reply } from '../http/reply.js';
import { channelNames, channelsBody } from '../views/channels.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';
import { asAgentLimit, presentProvisioned, provisionedAgent } from './provision.js';

/** Creates `POST /api/provision` (spec 4.15), which has caps of its own (spec 8). */
export function channelProvisionEndpoints({ ai, backend, settings }: WebDependencies) {
  return [
    area({ tag: 'Agents', auth: person, keyScope: 'agents', limit: LIMITS.provision })({
      method: 'POST',
      path: '/api/provision',
      operationId: 'provisionAgentWithChannels',
      summary: 'Provision an agent with the tokens of its channels',
      idempotent: true,
      body: z.strictObject({
        name: agentName,
        plan: z
          .enum([...PLANS, FREE_PLAN], { error: `plan must be one of ${PLANS.join(', ')}` })
          .optional(),
        model: z.enum(AGENT_MODELS).optional(),
        config: z.record(z.string(), z.unknown()).optional(),
        channels: channelsBody.optional(),
      }),
      responses: {
        201: z.strictObject({
          success: z.literal(true),
          agent: provisionedAgent.extend({ channels: z.array(z.enum(CHANNEL_NAMES)) }),
        }),
      },
      errors: [...errorsOf(deployAgent), 403, 429],
      async handler(request) {
        const { body, caller } = request;
        const plan = planToProvision(planHolder(caller), body.plan);
        const agentCap = caller.plan && (channelAgentLimit(caller.plan) ?? null);
        const made = await asAgentLimit(() =>
          backend.call(request, deployAgent, {
            body: { ...body, plan, agentCap },
            storesResponse: true,
          }),
        );
        const agent = {
          ...presentProvisioned({ ai, settings }, made, body, planOfPerson(caller)),
          channels: channelNames(body.channels ?? {}),
        };
        return reply(201, { success: true, agent });
      },
    }),
  ];
}
