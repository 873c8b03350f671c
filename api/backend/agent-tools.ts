import { z } from 'zod';
import { sealCredential } from '../../src/agents/agent-credentials.js';
import { withSkill } from '../../src/agents/agent-skills.js';
import { getAgent } from '../../src/agents/agents.js';
import { BadRequestError } from '../../src/errors.js';
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
import { agentConfig } from './deployments.js';
import type { BackendDependencies } from './dependencies.js';
import { answerOperation, requireContainers } from './operations.js';

/** What an agent works with: its skills, and the credentials of its tools. */
export function agentToolEndpoints(dependencies: BackendDependencies) {
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
      async handler(request) {
        const { body, params, tenant } = request;
        await requireContainers(dependencies);
        const agent = await getAgent(tenant, params.id);
        const skill = { name: params.skill, ...body };
        const { error } = agentConfig.safeParse(withSkill(agent.config, skill));
        if (error) throw new BadRequestError(error.issues[0]?.message ?? 'config is not valid');
        return answerOperation(dependencies, request, agent, 'configure', { skill });
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
      async handler(request) {
        const { body, idempotencyId, params, tenant } = request;
        await requireContainers(dependencies);
        const agent = await getAgent(tenant, params.id);
        const { name } = params;
        const change = sealCredential(dependencies.secrets, agent.id, { name, value: body.value });
        // Two changes of one credential are never the same one, whatever their sealed values are.
        const input = { credential: { name, version: idempotencyId } };
        return answerOperation(dependencies, request, agent, 'configure', input, change);
      },
    }),
  ];
}
