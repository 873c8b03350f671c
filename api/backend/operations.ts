import { z } from 'zod';
import { getAgent } from '../../src/agents/agents.js';
import { listOperations } from '../../src/agents/operations.js';
import { listTransitions } from '../../src/agents/watchdog-transitions.js';
import { internalKey } from '../auth/internal-key.js';
import { endpoint } from '../http/endpoint.js';
import { reply } from '../http/reply.js';
import { agentIdParams } from '../views/backend-agents.js';
import {
  operationAnswer,
  operationList,
  presentOperation,
  waitQuery,
} from '../views/operations.js';
import { presentTransition } from '../views/watchdog.js';
import { answerOperation } from './answer-operation.js';
import type { BackendDependencies } from './dependencies.js';
import { requestedBy } from './requested-by.js';

/** What is done to an agent without saying more, and the history of all operations. */
export function operationEndpoints({ operations }: Pick<BackendDependencies, 'operations'>) {
  const lifecycle = (
    kind: 'start' | 'stop' | 'restart' | 'repair' | 'reset-memory',
    summary: string,
  ) =>
    endpoint({
      method: 'POST',
      path: `/api/agents/:id/${kind}`,
      summary,
      tag: 'Agents',
      auth: internalKey,
      idempotent: true,
      params: agentIdParams,
      query: waitQuery,
      responses: { 202: operationAnswer },
      errors: [404, 409, 503],
      handler: (request) =>
        answerOperation(request, operations.run(requestedBy(request), request.params.id, kind)),
    });

  return [
    lifecycle('start', 'Start an agent'),
    lifecycle('stop', 'Stop an agent'),
    lifecycle('restart', 'Restart an agent'),
    lifecycle(
      'repair',
      'Repair an agent: kill its gateway, start it again, verify that it is well',
    ),
    lifecycle('reset-memory', 'Archive the memory of an agent, and give it an empty one'),
    endpoint({
      method: 'GET',
      path: '/api/agents/:id/operations',
      summary: 'What was done to an agent, newest first',
      tag: 'Agents',
      auth: internalKey,
      params: agentIdParams,
      query: z.object({ limit: z.coerce.number().int().min(1).max(200).default(50) }),
      responses: { 200: operationList },
      errors: [404],
      async handler({ params, query, tenant }) {
        const agent = await getAgent(tenant, params.id);
        const listed = await listOperations(tenant, agent.id, query.limit);
        const transitions = await listTransitions(tenant, agent.id, query.limit);
        return reply(200, {
          operations: listed.map(presentOperation),
          transitions: transitions.map(presentTransition),
        });
      },
    }),
  ];
}
