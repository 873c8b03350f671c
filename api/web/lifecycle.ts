import { z } from 'zod';
import { getAgent } from '../../src/agents/agents.js';
import { OPERATION_KINDS } from '../../src/agents/operation-rules.js';
import { endpoint } from '../http/endpoint.js';
import { reply } from '../http/reply.js';
import { agentIdParams } from './agent-schemas.js';
import type { WebDependencies } from './dependencies.js';

const operationStatus = z.enum(['requested', 'running', 'succeeded', 'failed', 'cancelled']);

const started = z.strictObject({
  id: z.string(),
  operation: z.string(),
  operationId: z.string(),
  status: operationStatus,
  error: z.string().nullable(),
});

const operations = z.strictObject({
  operations: z.array(
    z.strictObject({
      id: z.string(),
      operation: z.enum(OPERATION_KINDS),
      status: operationStatus,
      error: z.string().nullable(),
      requestedAt: z.iso.datetime(),
      finishedAt: z.iso.datetime().nullable(),
    }),
  ),
});

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
      query: z.object({
        wait: z.coerce
          .number()
          .min(0)
          .max(60)
          .default(0)
          .describe('Seconds to hold the answer until the operation ends'),
      }),
      responses: { 202: started },
      errors: [404, 409, 502, 503],
      async handler(request) {
        const { params, query, tenant } = request;
        const { id } = await getAgent(tenant, params.id);
        const path = `/api/agents/${encodeURIComponent(id)}/${kind}?wait=${query.wait}`;
        const waitMs = query.wait * 1_000;
        const answer = await backend.call(request, 'POST', path, started, undefined, waitMs);
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
      responses: { 200: operations },
      errors: [404, 502],
      async handler(request) {
        const { id } = await getAgent(request.tenant, request.params.id);
        const path = `/api/agents/${encodeURIComponent(id)}/operations`;
        return reply(200, await backend.call(request, 'GET', path, operations));
      },
    }),
  ];
}
