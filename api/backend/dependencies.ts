import type { Logger } from 'pino';
import type { Ai } from '../../src/ai/ai.js';
import type { Settings } from '../../src/settings.js';
import type { DockerContainers } from '../../src/containers/docker-containers.js';
import type { Database } from '../../src/database/database.js';
import type { SecretBox } from '../../src/secrets/secret-box.js';
import type { HeartbeatSchedules } from '../../temporal/heartbeat-schedules.js';
import type { Supervisors } from '../../temporal/supervisors.js';

/** What the backend API's endpoints work with. */
export interface BackendDependencies {
  readonly ai: Ai;
  readonly settings: Settings;
  readonly database: Database;
  readonly secrets: SecretBox;
  readonly supervisors: Supervisors;
  readonly heartbeatSchedules: HeartbeatSchedules;
  readonly containers: DockerContainers;
  readonly log: Logger;
}
