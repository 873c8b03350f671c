import { getAgent } from '../../src/agents/agents.js';
import { getArchive, listArchives } from '../../src/agents/archives.js';
import { runtimeImage, versionOf, withTag } from '../../src/containers/image-name.js';
import { ConflictError } from '../../src/errors.js';
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
import type { BackendDependencies } from './dependencies.js';
import { answerOperation, requireContainers } from './operations.js';

/** `POST /api/agents/:id/update|restore`, and the archives to restore from. */
export function releaseEndpoints(dependencies: BackendDependencies) {
  const { settings } = dependencies;
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
      async handler(request) {
        const { version } = request.body;
        await requireContainers(dependencies);
        const agent = await getAgent(request.tenant, request.params.id);
        const usual = runtimeImage(settings.agents);
        const image = version === undefined ? usual : withTag(agent.image ?? usual, version);
        if (version === undefined && image === agent.failedImage) {
          throw new ConflictError(
            `The update to ${versionOf(image)} has failed before; name the version to try it again`,
          );
        }
        return answerOperation(dependencies, request, agent, 'update', { image });
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
      async handler(request) {
        await requireContainers(dependencies);
        const agent = await getAgent(request.tenant, request.params.id);
        const archive = await getArchive(request.tenant, agent.id, request.body.archiveId);
        return answerOperation(dependencies, request, agent, 'restore', { archiveId: archive.id });
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
