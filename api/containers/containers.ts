import type { Logger } from 'pino';
import type { AgentAiServices } from '../../src/agent-ai-services.js';
import type { Refusals } from '../../src/platform/audit/refusals.js';
import { PLATFORM_NAME } from '../../src/docker/containers/container-spec.js';
import type { RequestSeconds } from '../../src/platform/http/request-seconds.js';
import type { Settings } from '../../src/settings.js';
import type { Database } from '../../src/platform/database/database.js';
import { agentToken } from '../auth/agent-token.js';
import { createListener, type Listener } from '../http/listener.js';
import { agentAiEndpoints } from './ai.js';
import { agentBusEndpoints } from './bus.js';

export interface ContainersDependencies extends Omit<AgentAiServices, 'refusals'> {
  readonly settings: Settings;
  readonly database: Database;
  readonly log: Logger;
  /** Metrics of requests. */
  readonly requests?: RequestSeconds | undefined;
  readonly refusals?: Pick<Refusals, 'note'>;
}

/** Creates the listener for agents, the only listener that agents' containers can reach. */
export function createContainersListener(dependencies: ContainersDependencies): Listener {
  const { agentCallers, settings, database, log, refusals } = dependencies;
  return createListener({
    name: 'containers',
    title: "Agent Platform Service: agents' AI",
    endpoints: [...agentAiEndpoints(dependencies), ...agentBusEndpoints(dependencies)],
    undocumented: true,
    limits: [],
    authenticate: [agentToken.with((shown) => agentCallers.find(shown.agentToken))],
    database,
    ...(refusals && { refusals }),
    log,
    requests: dependencies.requests,
    settings: settings.http,
    alsoNamed: [PLATFORM_NAME],
  });
}
