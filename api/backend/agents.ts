import { z } from 'zod';
import { PLANS } from '../../src/accounts/plans.js';
import { agentConfig, agentName } from '../../src/agents/agent-config.js';
import { getAgent, listAgents } from '../../src/agents/agents.js';
import { internalKey } from '../auth/internal-key.js';
import { endpoint } from '../http/endpoint.js';
import { decodeCursor, encodeCursor, nextPageLink, pageQuery } from '../http/pagination.js';
import { reply } from '../http/reply.js';
import {
  agentCreated,
  agentDetail,
  agentIdParams,
  agentListItem,
  agentStatus,
  presentCreated,
  presentDetail,
  presentListItem,
} from '../views/backend-agents.js';
import { runHeader } from './answer-operation.js';
import type { BackendDependencies } from './dependencies.js';
import { requestedBy } from './requested-by.js';

/** `/api/agents` of the backend (spec 4.7). */
export function agentEndpoints({ settings, deployments, operations }: BackendDependencies) {
  return [
    endpoint({
      method: 'GET',
      path: '/api/agents',
      summary: 'List agents',
      tag: 'Agents',
      auth: internalKey,
      query: z.object(pageQuery),
      responses: { 200: z.array(agentListItem) },
      async handler({ query, tenant }) {
        const page = await listAgents(tenant, {
          limit: query.limit,
          after: query.cursor === undefined ? undefined : decodeCursor(query.cursor, 2),
        });
        return reply(
          200,
          page.items.map((agent) => presentListItem(agent, settings.agents)),
          nextPageLink('/api/agents', { limit: query.limit }, page.next && encodeCursor(page.next)),
        );
      },
    }),
    endpoint({
      method: 'POST',
      path: '/api/agents',
      summary: 'Create an agent',
      tag: 'Agents',
      auth: internalKey,
      idempotent: true,
      body: z.object({ name: agentName, config: agentConfig.optional() }),
      responses: { 201: agentCreated },
      errors: [402, 404, 409, 503],
      async handler(request) {
        const { plan, aiProvider, model, ...config_ } = request.body.config ?? {};
        const { agent, run } = await deployments.deploy(requestedBy(request), {
          name: request.body.name,
          plan: typeof plan === 'string' ? plan : undefined,
          aiProvider: typeof aiProvider === 'string' ? aiProvider : undefined,
          model: typeof model === 'string' ? model : undefined,
          config: config_,
        });
        return reply(201, presentCreated(agent, settings.agents), runHeader(run));
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/agents/:id',
      summary: 'One agent in full',
      tag: 'Agents',
      auth: internalKey,
      params: agentIdParams,
      responses: { 200: agentDetail },
      errors: [404],
      async handler({ params, tenant }) {
        return reply(200, presentDetail(await getAgent(tenant, params.id), settings.agents));
      },
    }),
    endpoint({
      method: 'PUT',
      path: '/api/agents/:id',
      summary: 'Change plan, AI provider or configuration; a running agent restarts with them',
      tag: 'Agents',
      auth: internalKey,
      idempotent: true,
      params: agentIdParams,
      body: z.object({
        plan: z.string().optional(),
        aiProvider: z.string().optional(),
        config: agentConfig.optional(),
      }),
      responses: {
        200: z.strictObject({
          id: z.string(),
          plan: z.enum(PLANS),
          aiProvider: z.string(),
          subdomain: z.string(),
          status: agentStatus,
          message: z.string(),
        }),
      },
      errors: [404, 409, 503],
      async handler(request) {
        const { agent, aiProvider, plan, run } = await operations.configure(
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
            message:
              agent.desired === 'running'
                ? 'Agent updated; it restarts with the new configuration'
                : 'Agent updated; it takes effect when the agent starts',
          },
          runHeader(run),
        );
      },
    }),
    endpoint({
      method: 'DELETE',
      path: '/api/agents/:id',
      summary: 'Remove an agent and all that belongs to it, whatever it is doing',
      tag: 'Agents',
      auth: internalKey,
      params: agentIdParams,
      responses: { 200: z.strictObject({ id: z.string(), deleted: z.literal(true) }) },
      async handler(request) {
        const { id } = request.params;
        const admitted = await operations.remove(requestedBy(request), id);
        return reply(200, { id, deleted: true as const }, runHeader(admitted?.run));
      },
    }),
  ];
}
