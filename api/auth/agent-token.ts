import type { CallingAgent } from '../../src/agents/credentials/agent-caller-lookup.js';
import { bearerToken, credential } from './credential.js';

/** The token of an agent's container: grants access to the rows of the agent's owner. */
export const agentToken = credential({
  name: 'agent',
  shows: { agentToken: bearerToken("The agent's own token") },
  idOf: ({ agentId }: CallingAgent) => agentId,
});
