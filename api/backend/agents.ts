import * as z from 'zod';
import { findEntitlement } from '../../src/accounts/accounts/entitlement.js';
import { choiceOf, shownModel } from '../../src/agents/model/agent-model.js';
import { getAgent, listAgents } from '../../src/agents/agents/agents.js';
import { internalKey } from '../auth/internal-key.js';
import { area } from '../http/area.js';
import { nextPageLink, page } from '../http/pagination.js';
import { reply } from '../http/reply.js';
import {
  agentDetail,
  agentIdParams,
  agentListItem,
  presentCreated,
  presentDetail,
  presentListItem,
} from '../views/backend-agents.js';
import { runHeader } from './answer-operation.js';
import { createAgent, deleteAgent, deploymentOf, updateAgent } from './contract.js';
import type { BackendDependencies } from './dependencies.js';
import { requestedBy } from './requested-by.js';

const agents = area({ tag: 'Agents', auth: internalKey });
const ofAgent = area({ tag: 'Agents', auth: internalKey, params: agentIdParams, errors: [404] });

/** Creates the backend's `/api/agents` endpoints (spec 4.7). */
export function agentEndpoints({ ai, settings, deployments, operations }: BackendDependencies) {
  return [
    agents({
      method: 'GET',
      path: '/api/agents',
      operationId: 'listAgents',
      summary: 'List agents',
      query: z.object(page),
      responses: { 200: z.array(agentListItem) },
      async handler({ query, tenant }) {
        const { items, next } = await listAgents(tenant, {
          limit: query.limit,
          after: query.cursor,
        });
        const agents = items.map((agent) => presentListItem(agent, settings));
        return reply(200, agents, nextPageLink('/api/agents', query, next));
      },
    }),
    createAgent.handledBy(async (request) => {
      const { agent, run } = await deployments.deploy(
        requestedBy(request),
        deploymentOf(request.body),
      );
      return reply(201, presentCreated(agent, settings), runHeader(run));
    }),
    ofAgent({
      method: 'GET',
      path: '/api/agents/:id',
      operationId: 'getAgent',
      summary: 'Get an agent with all details',
      responses: { 200: agentDetail },
      async handler({ params, tenant }) {
        const agent = await getAgent(tenant, params.id);
        const entitlement = await findEntitlement(tenant, agent.userId, settings.accounts);
        const model = shownModel(ai.router, choiceOf(agent), entitlement?.plan);
        return reply(200, presentDetail(agent, model, settings));
      },
    }),
    updateAgent.handledBy(async (request) => {
      const { agent, aiProvider, isRequested, plan, run } = await operations.configure(
        requestedBy(request),
        request.params.id,
        request.body,
      );
      return reply(
        200,
        {
          id: agent.id,
          plan,
          aiProvider,
          subdomain: agent.subdomain,
          status: agent.status,
          message: isRequested ? updatedMessage(agent.desired) : 'No changes requested',
        },
        runHeader(run),
      );
    }),
    deleteAgent.handledBy(async (request) => {
      const { id } = request.params;
      const admitted = await operations.remove(requestedBy(request), id);
      return reply(200, { id, deleted: true }, runHeader(admitted?.run));
    }),
  ];
}

const updatedMessage = (desired: string): string =>
  desired === 'running'
    ? 'Agent updated; it restarts with the new configuration'
    : 'Agent updated; it takes effect when the agent starts';
