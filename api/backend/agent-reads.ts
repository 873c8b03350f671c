import { getAgent } from '../../src/agents/agents/agents.js';
import { listArchives } from '../../src/agents/memory/archives.js';
import { reply } from '../http/reply.js';
import { answerHistory, presentArchive } from '../views/operations.js';
import { agentArchives, agentOperations } from './contract.js';

/** Reads of an agent for both listeners: row-level security decides by `tenant`, so `caller` is not used. */
export const AGENT_READS = [
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
