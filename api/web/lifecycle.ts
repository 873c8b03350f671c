import { getAgent } from '../../src/agents/agents/agents.js';
import { person } from '../auth/person.js';
import { AGENT_READS } from '../backend/agent-reads.js';
import { FOR_OWNERS } from '../backend/contract.js';
import type { WebDependencies } from './dependencies.js';
import { forwarder } from './forward.js';
import { LIMITS } from './limits.js';

/** Returns the backend's endpoints about one agent, for its owner (decision 2). */
export function lifecycleEndpoints({ backend }: Pick<WebDependencies, 'backend'>) {
  const limit = LIMITS.agents;
  const forward = forwarder<{ readonly id: string }>(backend, {
    keyScope: 'agents',
    limit,
    check: ({ params, tenant }) => getAgent(tenant, params.id),
  });
  return [
    ...FOR_OWNERS.map(forward),
    ...AGENT_READS.map((read) => ({
      ...read,
      auth: person,
      keyScope: 'agents' as const,
      limit,
    })),
  ];
}
