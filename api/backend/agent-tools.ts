import { z } from 'zod';
import { internalKey } from '../auth/internal-key.js';
import {
  changesSkill,
  credentialName,
  credentialValue,
  NO_SKILL_CHANGE,
  skillName,
  skillSettings,
} from '../views/agent-tools.js';
import { endpoint } from '../http/endpoint.js';
import { operationAnswer, waitQuery } from '../views/operations.js';
import { agentIdParams } from '../views/backend-agents.js';
import { answerOperation } from './answer-operation.js';
import type { BackendDependencies } from './dependencies.js';
import { requestedBy } from './requested-by.js';

/** What an agent works with: its skills, and the credentials of its tools. */
export function agentToolEndpoints({ operations }: Pick<BackendDependencies, 'operations'>) {
  return [
    endpoint({
      method: 'PUT',
      path: '/api/agents/:id/skills/:skill',
      summary: 'Change one skill in the configuration of an agent; goes back when that fails',
      tag: 'Agents',
      auth: internalKey,
      idempotent: true,
      params: agentIdParams.extend({ skill: skillName }),
      query: waitQuery,
      body: z.object(skillSettings).refine(changesSkill, NO_SKILL_CHANGE),
      responses: { 202: operationAnswer },
      errors: [404, 409, 503],
      handler: (request) => {
        const { body, params } = request;
        const skill = { name: params.skill, ...body };
        return answerOperation(
          request,
          operations.changeSkill(requestedBy(request), params.id, skill),
        );
      },
    }),
    endpoint({
      method: 'PUT',
      path: '/api/agents/:id/credentials/:name',
      summary: "Set or remove an environment variable of an agent's tools; goes back when it fails",
      tag: 'Agents',
      auth: internalKey,
      idempotent: 'sealed',
      params: agentIdParams.extend({ name: credentialName }),
      query: waitQuery,
      body: z.object({ value: credentialValue }),
      responses: { 202: operationAnswer },
      errors: [404, 409, 503],
      handler: (request) => {
        const { body, params } = request;
        return answerOperation(
          request,
          operations.changeCredential(requestedBy(request), params.id, params.name, body.value),
        );
      },
    }),
  ];
}
