import type { Logger } from 'pino';
import { findAgentByAiToken } from '../../src/agents/agent-secrets.js';
import { createListener, type Listener } from '../http/listener.js';
import { agentAiEndpoints, type AgentAiDependencies } from './ai.js';

/** The one listener that agents' containers can reach. Nothing else of ours is on it. */
export function createContainersListener(
  dependencies: AgentAiDependencies & { readonly log: Logger },
): Listener {
  const { config, database, log } = dependencies;
  return createListener({
    name: 'containers',
    title: "Agent Platform Service: agents' AI",
    endpoints: agentAiEndpoints(dependencies),
    limits: [],
    authenticate: { agent: (token) => findAgentByAiToken(database, token) },
    database,
    log,
    config,
  });
}
