import { getAgent } from '../../src/agents/agents/agents.js';
import { readMemory, writeMemory } from '../../src/agents/memory/runtime-memory.js';
import type { TenantDatabase } from '../../src/platform/database/database.js';
import { reply } from '../http/reply.js';
import type { BackendDependencies } from './dependencies.js';
import { getMemory, storeMemory } from './memory-contract.js';
import { requestedBy } from './requested-by.js';

/** Creates the endpoints of `/api/memory`, which the web API forwards for an agent's owner. */
export function memoryEndpoints({ directory }: Pick<BackendDependencies, 'directory'>) {
  const find = async (tenant: TenantDatabase, agentId: string) => {
    const agent = await getAgent(tenant, agentId);
    const { host, id, userId } = agent;
    return { agent, files: directory.filesOf({ agentId: id, userId, host }) };
  };

  return [
    getMemory.handledBy(async ({ query: { agentId, path, q }, signal, tenant }) => {
      const { files } = await find(tenant, agentId);
      if (path !== undefined) return reply(200, { agentId, ...(await readMemory(files, path)) });
      if (q !== undefined) {
        return reply(200, { agentId, query: q, matches: await files.findInMemory(q, signal) });
      }
      return reply(200, { agentId, ...(await files.memoryFiles(signal)) });
    }),
    storeMemory.handledBy(async (request) => {
      const { agentId, ...write } = request.body;
      const { agent, files } = await find(request.tenant, agentId);
      const stored = await writeMemory(requestedBy(request), files, agent, write);
      return reply(201, { agentId, ...stored });
    }),
  ];
}
