import type { Logger } from 'pino';
import type { AgentCallerLookup } from '../../src/agents/agent-caller-lookup.js';
import type { Refusals } from '../../src/audit/refusals.js';
import { PLATFORM_NAME } from '../../src/containers/container-spec.js';
import type { Ai } from '../../src/ai/ai.js';
import type { Settings } from '../../src/settings.js';
import type { Database } from '../../src/database/database.js';
import { agentToken } from '../auth/agent-token.js';
import { createListener, type Listener } from '../http/listener.js';
import { agentAiEndpoints } from './ai.js';

/** What the agents' listener works with. */
export interface ContainersDependencies {
  readonly settings: Settings;
  readonly database: Database;
  readonly agentCallers: AgentCallerLookup;
  readonly ai: Ai;
  readonly log: Logger;
  readonly refusals?: Pick<Refusals, 'note'>;
}

/** The one listener that agents' containers can reach. Nothing else of ours is on it. */
export function createContainersListener(dependencies: ContainersDependencies): Listener {
  const { agentCallers, settings, database, log, refusals } = dependencies;
  return createListener({
    name: 'containers',
    title: "Agent Platform Service: agents' AI",
    endpoints: agentAiEndpoints(dependencies),
    undocumented: true,
    limits: [],
    authenticate: [agentToken.with((shown) => agentCallers.find(shown.agentToken))],
    database,
    ...(refusals && { refusals }),
    log,
    settings: settings.http,
    alsoNamed: [PLATFORM_NAME],
  });
}
