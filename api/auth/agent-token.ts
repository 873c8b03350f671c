import type { CallingAgent } from '../../src/agents/agent-caller-lookup.js';
import { groundedAuthentication } from './authentication.js';
import { bearerOf } from './bearer-token.js';

/** An agent, by the token that its container holds. */
export interface AgentCaller extends CallingAgent {
  readonly kind: 'agent';
}

/** Finds a living agent by the token that its container presents. */
export type AgentFinder = (token: string) => Promise<CallingAgent | undefined>;

/** The token of an agent, which sees what its owner sees. */
export const agentToken = groundedAuthentication<AgentFinder, AgentCaller>({
  name: 'agent',
  schemes: {
    agentToken: { type: 'http', scheme: 'bearer', description: "The agent's own token" },
  },
  errors: [401],
  prepare:
    (find) =>
    async ({ request }) => {
      const token = bearerOf(request);
      const agent = token === undefined ? undefined : await find(token);
      if (agent === undefined) return undefined;
      const { agentId, userId } = agent;
      return { caller: { kind: 'agent', ...agent }, sees: { userId }, scope: `agent:${agentId}` };
    },
});
