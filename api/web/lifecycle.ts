import type { z } from 'zod';
import { getAgent } from '../../src/agents/agents.js';
import { listArchives } from '../../src/agents/archives.js';
import type { OperationKind } from '../../src/agents/operation-rules.js';
import { session } from '../auth/session.js';
import { endpoint } from '../http/endpoint.js';
import {
  archiveList,
  operationAnswer,
  operationList,
  presentArchive,
  restoreBody,
  updateBody,
  waitQuery,
} from '../views/operations.js';
import { reply } from '../http/reply.js';
import { agentIdParams } from '../views/web-agents.js';
import { agentPath } from './backend-client.js';
import type { WebDependencies } from './dependencies.js';

/** Proxies of the backend's lifecycle calls, behind a check of ownership (decision 2). */
export function lifecycleEndpoints({ backend }: WebDependencies) {
  const lifecycle = <Body extends z.ZodType = z.ZodUndefined>(
    kind: Exclude<OperationKind, 'provision' | 'configure' | 'delete'>,
    summary: string,
    body?: Body,
  ) =>
    endpoint({
      method: 'POST',
      path: `/api/agents/:id/${kind}`,
      summary,
      tag: 'Agents',
      auth: session,
      idempotent: true,
      params: agentIdParams,
      query: waitQuery,
      ...(body && { body }),
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
          request.body,
          waitMs,
        );
        return reply(202, answer);
      },
    });

  return [
    lifecycle('start', 'Start an agent'),
    lifecycle('stop', 'Stop an agent'),
    lifecycle('restart', 'Restart an agent'),
    lifecycle(
      'repair',
      'Repair an agent: kill its gateway, start it again, verify that it is well',
    ),
    lifecycle('update', 'Update an agent; it goes back by itself when that fails', updateBody),
    lifecycle('reset-memory', 'Archive the memory of an agent, and give it an empty one'),
    lifecycle(
      'restore',
      'Give an agent an archived memory; the present one is archived',
      restoreBody,
    ),
    endpoint({
      method: 'GET',
      path: '/api/agents/:id/archives',
      summary: 'The archived memories of an agent, newest first',
      tag: 'Agents',
      auth: session,
      params: agentIdParams,
      responses: { 200: archiveList },
      errors: [404],
      async handler({ params, tenant }) {
        const { id } = await getAgent(tenant, params.id);
        const archives = await listArchives(tenant, id);
        return reply(200, { archives: archives.map(presentArchive) });
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/agents/:id/operations',
      summary: 'What was done to an agent, newest first',
      tag: 'Agents',
      auth: session,
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
