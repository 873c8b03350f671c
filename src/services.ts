import type { Logger } from 'pino';
import { AgentOperations } from './agents/agent-operations.js';
import { Deployments } from './agents/deployments.js';
import type { AgentSupervisors } from './agents/supervisors.js';
import { createAi, type Ai } from './ai/ai.js';
import type { AttemptResult } from './ai/no-answer-error.js';
import type { DockerHost } from './containers/docker-host.js';
import { runtimeImage } from './containers/image-name.js';
import { Chats } from './chat/chats.js';
import type { Database } from './database/database.js';
import type { HeartbeatScheduler } from './heartbeat/heartbeats.js';
import { UserHeartbeats } from './heartbeat/user-heartbeats.js';
import { SecretBox } from './secrets/secret-box.js';
import type { Settings } from './settings.js';

/** What the product stands on, as whoever starts it gives it. */
export interface Foundation {
  readonly settings: Settings;
  readonly database: Database;
  readonly docker: DockerHost;
  readonly supervisors: AgentSupervisors;
  readonly heartbeatSchedules: HeartbeatScheduler;
  readonly log: Logger;
  /** Is told of every model that was tried for a call. */
  readonly onAttempt?: (result: AttemptResult) => void;
}

/** What the product does, by area. */
export interface Services {
  readonly ai: Ai;
  readonly chats: Chats;
  readonly deployments: Deployments;
  readonly heartbeats: UserHeartbeats;
  readonly operations: AgentOperations;
  readonly secrets: SecretBox;
}

/** Puts the product together: the one place that does. To be closed by way of `ai.meter`. */
export function createServices(foundation: Foundation): Services {
  const { docker, database, log, settings, supervisors } = foundation;
  const secrets = new SecretBox(settings.secrets.encryptionKey);
  const { provider: aiProvider } = settings.ai;
  return {
    ai: createAi(foundation),
    chats: new Chats(secrets, settings),
    heartbeats: new UserHeartbeats(database, foundation.heartbeatSchedules),
    deployments: new Deployments({
      database,
      secrets,
      supervisors,
      docker,
      enabled: settings.agents.provisioningEnabled,
      aiProvider,
      accounts: settings.accounts,
      log,
    }),
    operations: new AgentOperations({
      supervisors,
      docker,
      secrets,
      runtimeImage: runtimeImage(settings.agents),
      aiProvider,
      log,
    }),
    secrets,
  };
}
