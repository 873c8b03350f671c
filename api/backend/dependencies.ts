import type { Logger } from 'pino';
import type { AgentOperations } from '../../src/agents/agent-operations.js';
import type { Deployments } from '../../src/agents/deployments.js';
import type { Ai } from '../../src/ai/ai.js';
import type { Settings } from '../../src/settings.js';
import type { DockerHost } from '../../src/containers/docker-host.js';
import type { Database } from '../../src/database/database.js';
import type { SecretBox } from '../../src/secrets/secret-box.js';
import type { HeartbeatScheduler } from '../../src/heartbeat/heartbeats.js';

/** What the backend API's endpoints work with. */
export interface BackendDependencies {
  readonly ai: Ai;
  readonly settings: Settings;
  readonly database: Database;
  readonly secrets: SecretBox;
  readonly operations: AgentOperations;
  readonly deployments: Deployments;
  readonly heartbeatSchedules: HeartbeatScheduler;
  readonly docker: DockerHost;
  readonly log: Logger;
}
