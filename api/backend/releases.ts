import { getAgent } from '../../src/agents/agents.js';
import { listArchives } from '../../src/agents/archives.js';
import { internalKey } from '../auth/internal-key.js';
import { endpoint } from '../http/endpoint.js';
import {
  archiveList,
  operationAnswer,
  presentArchive,
  restoreBody,
  updateBody,
  waitQuery,
} from '../views/operations.js';
import { reply } from '../http/reply.js';
import { agentIdParams } from '../views/backend-agents.js';
import { answerOperation } from './answer-operation.js';
import type { BackendDependencies } from './dependencies.js';
import { requestedBy } from './requested-by.js';

/** `POST /api/agents/:id/update|restore`, and the archives to restore from. */
export function releaseEndpoints({ operations }: Pick<BackendDependencies, 'operations'>) {
  return [
    endpoint({
      method: 'POST',
      path: '/api/agents/:id/update',
      summary: 'Update an agent; it goes back by itself when that fails',
      tag: 'Agents',
      auth: internalKey,
      idempotent: true,
      params: agentIdParams,
      query: waitQuery,
      body: updateBody,
      responses: { 202: operationAnswer },
      errors: [404, 409, 503],
      handler: (request) => {
        const { body, params } = request;
        return answerOperation(
          request,
          operations.update(requestedBy(request), params.id, body.version),
        );
      },
    }),
    endpoint({
      method: 'POST',
      path: '/api/agents/:id/restore',
      summary: 'Give an agent an archived memory; the present one is archived',
      tag: 'Agents',
      auth: internalKey,
      idempotent: true,
      params: agentIdParams,
      query: waitQuery,
      body: restoreBody,
      responses: { 202: operationAnswer },
      errors: [404, 409, 503],
      handler: (request) => {
        const { body, params } = request;
        return answerOperation(
          request,
          operations.restore(requestedBy(request), params.id, body.archiveId),
        );
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/agents/:id/archives',
      summary: 'The archived memories of an agent, newest first',
      tag: 'Agents',
      auth: internalKey,
      params: agentIdParams,
      responses: { 200: archiveList },
      errors: [404],
      async handler({ params, tenant }) {
        const agent = await getAgent(tenant, params.id);
        const archives = await listArchives(tenant, agent.id);
        return reply(200, { archives: archives.map(presentArchive) });
      },
    }),
  ];
}
