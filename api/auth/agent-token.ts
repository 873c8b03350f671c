import type { CallingAgent } from '../../src/agents/credentials/agent-caller-lookup.js';
import { bearerToken, credential } from './credential.js';

/** The token that an agent's container holds: it sees what the agent's owner sees. */
export const agentToken = credential({
  name: 'agent',
  shows: { agentToken: bearerToken("The agent's own token") },
  idOf: ({ agentId }: CallingAgent) => agentId,
});
