import type { Logger } from 'pino';
import { findAgentByAiToken } from '../../src/agents/agent-secrets.js';
import type { Config } from '../../src/config.js';
import type { Database } from '../../src/database/database.js';
import { createListener, type Listener } from '../http/listener.js';
import { agentAiEndpoints } from './ai.js';

/** The one listener that agents' containers can reach. Nothing else of ours is on it. */
export function createContainersListener(dependencies: {
  readonly config: Config;
  readonly database: Database;
  readonly log: Logger;
}): Listener {
  const { config, database, log } = dependencies;
  return createListener({
    name: 'containers',
    title: "Agent Platform Service: agents' AI",
    endpoints: agentAiEndpoints(config),
    limits: [],
    authenticate: { agent: (token) => findAgentByAiToken(database, token) },
    database,
    log,
    config,
  });
}
