import { getAgent } from '../../src/agents/agents/agents.js';
import { listArchives } from '../../src/agents/memory/archives.js';
import { person } from '../auth/person.js';
import { agentArchives, agentOperations, FOR_OWNERS } from '../backend/contract.js';
import { endpoint } from '../http/endpoint.js';
import { reply } from '../http/reply.js';
import { answerHistory, presentArchive } from '../views/operations.js';
import type { WebDependencies } from './dependencies.js';
import { forwarder } from './forward.js';
import { LIMITS } from './limits.js';

/** Creates the backend's lifecycle endpoints behind a check of ownership (decision 2). */
export function lifecycleEndpoints({ backend }: WebDependencies) {
  const forward = forwarder(backend, {
    limit: LIMITS.agents,
    owned: ({ params, tenant }) => getAgent(tenant, params.id),
  });
  return [
    ...FOR_OWNERS.map(forward),
    endpoint({
      ...agentArchives,
      auth: person,
      limit: LIMITS.agents,
      async handler({ params, tenant }) {
        const { id } = await getAgent(tenant, params.id);
        const archives = await listArchives(tenant, id);
        return reply(200, { archives: archives.map(presentArchive) });
      },
    }),
    endpoint({
      ...agentOperations,
      auth: person,
      limit: LIMITS.agents,
      async handler({ params, query, tenant }) {
        const { id } = await getAgent(tenant, params.id);
        return answerHistory(tenant, id, query);
      },
    }),
  ];
}
