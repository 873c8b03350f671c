import { AGENT_READS } from './agent-reads.js';
import { answerOperation } from './answer-operation.js';
import {
  installSkill,
  PLAIN_OPERATIONS,
  removeSkill,
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
    installSkill.handledBy((request) => {
      const { id, skill } = request.params;
      return answerOperation(request, operations.installSkill(requestedBy(request), id, skill));
    }),
    removeSkill.handledBy((request) => {
      const { id, skill } = request.params;
      return answerOperation(request, operations.removeSkill(requestedBy(request), id, skill));
    }),
    setCredential.handledBy((request) => {
      const { body, params } = request;
      return answerOperation(
        request,
        operations.changeCredential(requestedBy(request), params.id, params.name, body.value),
      );
    }),
    ...AGENT_READS,
  ];
}
