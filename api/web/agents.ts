import { z } from 'zod';
import { PLANS } from '../../src/accounts/plans.js';
import { planOf } from '../../src/accounts/subscriptions.js';
import { getAgent, listAgents } from '../../src/agents/agents.js';
import { optionalSession } from '../auth/optional-session.js';
import { session } from '../auth/session.js';
import { endpoint } from '../http/endpoint.js';
import { decodeCursor, encodeCursor, nextPageLink, pageQuery } from '../http/pagination.js';
import { reply } from '../http/reply.js';
import {
  agentDetail,
  agentIdParams,
  agentItem,
  presentDetail,
  presentItem,
} from '../views/web-agents.js';
import { agentPath } from './backend-client.js';
import type { WebDependencies } from './dependencies.js';
import { planWithin } from '../../src/accounts/plan-within.js';

const configuration = z.record(z.string(), z.unknown());

/** What the backend answers to a change; its status word is its own. */
const updated = z.object({
  id: z.string(),
  plan: z.enum(PLANS),
  aiProvider: z.string(),
  subdomain: z.string(),
  message: z.string(),
});

/** `/api/agents` of the web API (spec 4.7): the caller's own, read here, changed by the backend. */
export function agentEndpoints({ backend, settings, database }: WebDependencies) {
  return [
    endpoint({
      method: 'GET',
      path: '/api/agents',
      summary: 'List your agents; an empty list when nobody is signed in',
      tag: 'Agents',
      auth: optionalSession,
      query: z.object(pageQuery),
      responses: {
        200: z.strictObject({
          agents: z.array(agentItem),
          count: z.number(),
          status: z.literal('ok'),
        }),
      },
      async handler({ caller, query, tenant }) {
        const status = 'ok' as const;
        if (caller.kind !== 'session') return reply(200, { agents: [], count: 0, status });
        const { items, next } = await listAgents(tenant, {
          limit: query.limit,
          after: query.cursor === undefined ? undefined : decodeCursor(query.cursor, 2),
        });
        const agents = items.map((agent) => presentItem(agent, settings.agents));
        return reply(
          200,
          { agents, count: agents.length, status },
          nextPageLink('/api/agents', { limit: query.limit }, next && encodeCursor(next)),
        );
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/agents/:id',
      summary: 'One agent in full',
      tag: 'Agents',
      auth: session,
      params: agentIdParams,
      responses: { 200: z.strictObject({ agent: agentDetail, status: z.literal('ok') }) },
      errors: [404],
      async handler({ params, tenant }) {
        const agent = await getAgent(tenant, params.id);
        return reply(200, { agent: presentDetail(agent, settings.agents), status: 'ok' as const });
      },
    }),
    endpoint({
      method: 'PUT',
      path: '/api/agents/:id',
      summary: 'Change plan, AI provider or configuration; a running agent restarts with them',
      tag: 'Agents',
      auth: session,
      idempotent: true,
      params: agentIdParams,
      body: z.object({
        plan: z.string().optional(),
        aiProvider: z.string().optional(),
        config: configuration.optional(),
      }),
      responses: { 200: updated.extend({ status: agentItem.shape.status }) },
      errors: [402, 404, 409, 502, 503],
      async handler(request) {
        const { body, caller, params, tenant } = request;
        const agent = await getAgent(tenant, params.id);
        if (body.plan !== undefined && !caller.user.isAdmin) {
          planWithin(body.plan, await planOf(database, caller.user.id));
        }
        const answer = await backend.call(request, 'PUT', agentPath(params.id), updated, body);
        return reply(200, { ...answer, status: presentItem(agent, settings.agents).status });
      },
    }),
    endpoint({
      method: 'DELETE',
      path: '/api/agents/:id',
      summary: 'Remove an agent and all that belongs to it, whatever it is doing',
      tag: 'Agents',
      auth: session,
      params: agentIdParams,
      responses: { 200: z.strictObject({ id: z.string(), deleted: z.literal(true) }) },
      errors: [404, 502],
      async handler(request) {
        const { params, tenant } = request;
        await getAgent(tenant, params.id);
        const deleted = z.object({ id: z.string(), deleted: z.literal(true) });
        return reply(200, await backend.call(request, 'DELETE', agentPath(params.id), deleted));
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/agents/:id/config',
      summary: "An agent's configuration",
      tag: 'Agents',
      auth: session,
      params: agentIdParams,
      responses: { 200: z.strictObject({ id: z.string(), config: configuration }) },
      errors: [404],
      async handler({ params, tenant }) {
        const agent = await getAgent(tenant, params.id);
        return reply(200, { id: agent.id, config: agent.config });
      },
    }),
    endpoint({
      method: 'PUT',
      path: '/api/agents/:id/config',
      summary: "Replace an agent's configuration; a running agent restarts with it",
      tag: 'Agents',
      auth: session,
      idempotent: true,
      params: agentIdParams,
      body: z.object({ config: configuration }),
      responses: {
        200: z.strictObject({ id: z.string(), config: configuration, message: z.string() }),
      },
      errors: [404, 409, 502, 503],
      async handler(request) {
        const { body, params, tenant } = request;
        await getAgent(tenant, params.id);
        const { id, message } = await backend.call(
          request,
          'PUT',
          agentPath(params.id),
          updated,
          body,
        );
        return reply(200, { id, config: body.config, message });
      },
    }),
  ];
}
