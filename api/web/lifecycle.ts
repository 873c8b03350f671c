import { VERIFY_CALL_MS, findVerification } from '../../src/agents/verification/verifications.js';
import { getAgent } from '../../src/agents/agents/agents.js';
import { person } from '../auth/person.js';
import { endpoint } from '../http/endpoint.js';
import { reply } from '../http/reply.js';
import { agentIdParams } from '../views/backend-agents.js';
import { agentVerification, presentVerification } from '../views/verification.js';
import { AGENT_READS } from '../backend/agent-reads.js';
import { FOR_OWNERS, verifyAgent } from '../backend/contract.js';
import type { WebDependencies } from './dependencies.js';
import { forwarder, type ForwardOptions } from './forward.js';
import { LIMITS } from './limits.js';

/** Returns the backend's endpoints about one agent, for its owner (decision 2). */
export function lifecycleEndpoints({ backend }: Pick<WebDependencies, 'backend'>) {
  const limit = LIMITS.agents;
  const ofOwner: ForwardOptions<{ readonly id: string }> = {
    keyScope: 'agents',
    limit,
    check: ({ params, tenant }) => getAgent(tenant, params.id),
  };
  const forward = forwarder(backend, ofOwner);
  const forwardLong = forwarder(backend, {
    ...ofOwner,
    limitOfCaller: LIMITS.verificationsOfUser,
    timeoutMs: VERIFY_CALL_MS,
  });
  return [
    ...FOR_OWNERS.map(forward),
    forwardLong(verifyAgent),
    endpoint({
      method: 'GET',
      path: '/api/agents/:id/verify',
      operationId: 'getAgentVerification',
      summary: "Get your agent's current verification",
      tag: 'Agents',
      auth: person,
      keyScope: 'agents',
      limit,
      params: agentIdParams,
      responses: { 200: agentVerification },
      errors: [404],
      handler: async ({ params, tenant }) =>
        reply(200, presentVerification(await findVerification(tenant, params.id))),
    }),
    ...AGENT_READS.map((read) => ({
      ...read,
      auth: person,
      keyScope: 'agents' as const,
      limit,
    })),
  ];
}
