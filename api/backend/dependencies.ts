import type { Logger } from 'pino';
import type { Completions } from '../../src/ai/completions.js';
import type { ProviderHealthCheck } from '../../src/ai/provider-health.js';
import type { Router } from '../../src/ai/route.js';
import type { Config } from '../../src/config.js';
import type { DockerContainers } from '../../src/containers/docker-containers.js';
import type { Database } from '../../src/database/database.js';
import type { SecretBox } from '../../src/secrets/secret-box.js';
import type { HeartbeatSchedules } from '../temporal/heartbeat-schedules.js';
import type { Supervisors } from '../temporal/supervisors.js';

/** What AI endpoints work with. */
export interface AiDependencies {
  readonly completions: Completions;
  readonly router: Router;
  readonly health: ProviderHealthCheck;
}

/** What the backend API's endpoints work with. */
export interface BackendDependencies {
  readonly ai: AiDependencies;
  readonly config: Config;
  readonly database: Database;
  readonly secrets: SecretBox;
  readonly supervisors: Supervisors;
  readonly heartbeatSchedules: HeartbeatSchedules;
  readonly containers: DockerContainers;
  readonly log: Logger;
}
