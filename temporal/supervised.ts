import type { AgentRow } from '../src/database/models.js';
import type { Supervised } from './supervisors.js';

/** What the supervisor of this agent has to know when it is started anew. */
export function supervisedOf(agent: AgentRow): Supervised {
  return {
    agentId: agent.id,
    userId: agent.userId,
    host: agent.host,
    name: agent.name,
    desired: agent.desired === 'stopped' ? 'stopped' : 'running',
    provisioned: agent.startedAt !== null,
  };
}
