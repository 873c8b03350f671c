import { getAgent } from '../../src/agents/agents.js';
import { endpoint } from '../http/endpoint.js';
import { operationAnswer, operationList, waitQuery } from '../http/operation-schemas.js';
import { reply } from '../http/reply.js';
import { agentIdParams } from './agent-schemas.js';
import { agentPath } from './backend-client.js';
import type { WebDependencies } from './dependencies.js';

/** Proxies of the backend's lifecycle calls, behind a check of ownership (decision 2). */
export function lifecycleEndpoints({ backend }: WebDependencies) {
  const lifecycle = (kind: 'start' | 'stop' | 'restart', summary: string) =>
    endpoint({
      method: 'POST',
      path: `/api/agents/:id/${kind}`,
      summary,
      tag: 'Agents',
      auth: 'session',
      idempotent: true,
      params: agentIdParams,
      query: waitQuery,
      responses: { 202: operationAnswer },
      errors: [404, 409, 502, 503],
      async handler(request) {
        const { params, query, tenant } = request;
        const { id } = await getAgent(tenant, params.id);
        const path = `${agentPath(id)}/${kind}?wait=${query.wait}`;
        const waitMs = query.wait * 1_000;
        const answer = await backend.call(
          request,
          'POST',
          path,
          operationAnswer,
          undefined,
          waitMs,
        );
        return reply(202, answer);
      },
    });

  return [
    lifecycle('start', 'Start an agent'),
    lifecycle('stop', 'Stop an agent'),
    lifecycle('restart', 'Restart an agent'),
    endpoint({
      method: 'GET',
      path: '/api/agents/:id/operations',
      summary: 'What was done to an agent, newest first',
      tag: 'Agents',
      auth: 'session',
      params: agentIdParams,
      responses: { 200: operationList },
      errors: [404, 502],
      async handler(request) {
        const { id } = await getAgent(request.tenant, request.params.id);
        const path = `${agentPath(id)}/operations`;
        return reply(200, await backend.call(request, 'GET', path, operationList));
      },
    }),
  ];
}
