import { getAgent } from '../../src/agents/agents/agents.js';
import { listArchives } from '../../src/agents/memory/archives.js';
import { reply } from '../http/reply.js';
import { answerHistory, presentArchive } from '../views/operations.js';
import { answerOperation } from './answer-operation.js';
import {
  agentArchives,
  agentOperations,
  PLAIN_OPERATIONS,
  restoreMemory,
  setCredential,
  setSkill,
  updateRuntime,
} from './contract.js';
import type { BackendDependencies } from './dependencies.js';
import { requestedBy } from './requested-by.js';

/** Creates the endpoints for operations on an agent, its history, and its archived memories. */
export function operationEndpoints({ operations }: Pick<BackendDependencies, 'operations'>) {
  return [
    ...PLAIN_OPERATIONS.map(({ kind, declared }) =>
      declared.handledBy((request) =>
        answerOperation(request, operations.run(requestedBy(request), request.params.id, kind)),
      ),
    ),
    updateRuntime.handledBy((request) => {
      const { body, params } = request;
      const update = operations.update(requestedBy(request), params.id, body.version);
      return answerOperation(request, update);
    }),
    restoreMemory.handledBy((request) => {
      const { body, params } = request;
      const restore = operations.restore(requestedBy(request), params.id, body.archiveId);
      return answerOperation(request, restore);
    }),
    setSkill.handledBy((request) => {
      const { body, params } = request;
      const skill = { name: params.skill, ...body };
      return answerOperation(
        request,
        operations.changeSkill(requestedBy(request), params.id, skill),
      );
    }),
    setCredential.handledBy((request) => {
      const { body, params } = request;
      return answerOperation(
        request,
        operations.changeCredential(requestedBy(request), params.id, params.name, body.value),
      );
    }),
    agentArchives.handledBy(async ({ params, tenant }) => {
      const agent = await getAgent(tenant, params.id);
      const archives = await listArchives(tenant, agent.id);
      return reply(200, { archives: archives.map(presentArchive) });
    }),
    agentOperations.handledBy(async ({ params, query, tenant }) => {
      const agent = await getAgent(tenant, params.id);
      return answerHistory(tenant, agent.id, query);
    }),
  ];
}
