import { webStatus } from '../../src/agents/agents/web-status.js';
import * as z from 'zod';
import { choiceOf, shownModel, shownModels } from '../../src/agents/model/agent-model.js';
import { getAgent, listAgents } from '../../src/agents/agents/agents.js';
import { optionalPerson, person, planOfPerson } from '../auth/person.js';
import { updateAgent } from '../backend/contract.js';
import { area } from '../http/area.js';
import { errorsOf } from '../http/derived-errors.js';
import { nextPageLink, page } from '../http/pagination.js';
import { reply } from '../http/reply.js';
import {
  agentDetail,
  agentIdParams,
  agentItem,
  presentDetail,
  presentItem,
} from '../views/web-agents.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';
import { requirePlanWithin } from '../../src/accounts/accounts/require-plan-within.js';

const configuration = z.record(z.string(), z.unknown());

const limit = LIMITS.agents;
const agents = area({ tag: 'Agents', auth: optionalPerson, keyScope: 'agents', limit });
const ofAgent = area({
  tag: 'Agents',
  auth: person,
  keyScope: 'agents',
  params: agentIdParams,
  errors: [404],
  limit,
});

/** Creates the web API's `/api/agents` endpoints (spec 4.7): reads here, changes through the backend. */
export function agentEndpoints({ ai, backend, channelStates, settings }: WebDependencies) {
  return [
    agents({
      method: 'GET',
      path: '/api/agents',
      operationId: 'listAgents',
      summary: 'List your agents; empty without signing in',
      query: z.object(page),
      responses: {
        200: z.strictObject({
          agents: z.array(agentItem),
          count: z.int(),
          status: z.literal('ok'),
        }),
      },
      async handler({ caller, query, tenant }) {
        if (caller.kind === 'anonymous') return reply(200, { agents: [], count: 0, status: 'ok' });
        const { items, next } = await listAgents(tenant, {
          limit: query.limit,
          after: query.cursor,
        });
        const modelOf = shownModels(ai.router, planOfPerson(caller));
        const agents = items.map((agent) => presentItem(agent, modelOf(agent), settings));
        const answer = { agents, count: agents.length, status: 'ok' } as const;
        return reply(200, answer, nextPageLink('/api/agents', query, next));
      },
    }),
    ofAgent({
      method: 'GET',
      path: '/api/agents/:id',
      operationId: 'getAgent',
      summary: 'Get an agent with all details',
      responses: { 200: z.strictObject({ agent: agentDetail, status: z.literal('ok') }) },
      async handler({ caller, params, signal, tenant }) {
        const agent = await getAgent(tenant, params.id);
        const model = shownModel(ai.router, choiceOf(agent), planOfPerson(caller));
        const channels = await channelStates.of(tenant, agent, signal);
        const shown = presentDetail(agent, { model, channels }, settings);
        return reply(200, { agent: shown, status: 'ok' });
      },
    }),
    ofAgent({
      method: 'PUT',
      path: '/api/agents/:id',
      operationId: 'updateAgent',
      summary:
        "Change an agent's plan, AI provider or configuration; a running agent restarts with the change",
      idempotent: true,
      body: updateAgent.body,
      responses: { 200: updateAgent.responses[200].extend({ status: agentItem.shape.status }) },
      errors: [...errorsOf(updateAgent), 403],
      async handler(request) {
        const { body, caller, params, tenant } = request;
        const agent = await getAgent(tenant, params.id);
        if (body.plan !== undefined && !caller.user.isAdmin) {
          requirePlanWithin(body.plan, caller.plan);
        }
        const answer = await backend.call(request, updateAgent, { params, body });
        return reply(200, { ...answer, status: webStatus(agent.status) });
      },
    }),
    ofAgent({
      method: 'GET',
      path: '/api/agents/:id/config',
      operationId: 'getAgentConfig',
      summary: "Get an agent's configuration",
      responses: { 200: z.strictObject({ id: z.string(), config: configuration }) },
      async handler({ params, tenant }) {
        const agent = await getAgent(tenant, params.id);
        return reply(200, { id: agent.id, config: agent.config });
      },
    }),
    ofAgent({
      method: 'PUT',
      path: '/api/agents/:id/config',
      operationId: 'replaceAgentConfig',
      summary: "Replace an agent's configuration; a running agent restarts with it",
      idempotent: true,
      body: z.object({ config: configuration }),
      responses: {
        200: z.strictObject({ id: z.string(), config: configuration, message: z.string() }),
      },
      errors: [...errorsOf(updateAgent), 403],
      async handler(request) {
        const { body, params, tenant } = request;
        await getAgent(tenant, params.id);
        const { id, message } = await backend.call(request, updateAgent, { params, body });
        return reply(200, { id, config: body.config, message });
      },
    }),
  ];
}
