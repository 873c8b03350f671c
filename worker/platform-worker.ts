import type { NativeConnection } from '@temporalio/worker';
import { Worker, type WorkerOptions } from '@temporalio/worker';
import { createContainerActivities } from '../activities/containers.js';
import { createRecordActivities } from '../activities/records.js';
import { AgentRecords } from '../src/agents/agent-records.js';
import { AgentSpecs } from '../src/agents/agent-specs.js';
import type { Config } from '../src/config.js';
import type { DockerContainers } from '../src/containers/docker-containers.js';
import type { Database } from '../src/database/database.js';
import { SecretBox } from '../src/secrets/secret-box.js';
import { PLATFORM_TASK_QUEUE, containersTaskQueue } from '../workflows/ids.js';
import type { WorkflowCode } from './workflow-code.js';

/** How long running activities may go on when the worker is told to end, and then are cut off. */
const SHUTDOWN_GRACE = '10 seconds';
const SHUTDOWN_FORCE = '20 seconds';

/**
 * Calls to one engine at a time: starting a container is mostly the engine's own work, and more at
 * once only makes each of them time out.
 */
const MAX_ENGINE_CALLS = 40;

export interface WorkerDependencies {
  readonly connection: NativeConnection;
  readonly namespace: string;
  readonly config: Config;
  readonly database: Database;
  readonly containers: DockerContainers;
  readonly code: WorkflowCode;
  /** The Docker host that this worker stands beside. */
  readonly host: string;
  /** Image of agents that have none of their own. */
  readonly image: string;
}

/** The worker of the workflows and their records, and the one beside the host's Docker engine. */
export async function createWorkers(dependencies: WorkerDependencies): Promise<Worker[]> {
  const { code, config, connection, containers, database, host, image, namespace } = dependencies;
  const common: Pick<
    WorkerOptions,
    'connection' | 'namespace' | 'shutdownGraceTime' | 'shutdownForceTime'
  > = {
    connection,
    namespace,
    shutdownGraceTime: SHUTDOWN_GRACE,
    shutdownForceTime: SHUTDOWN_FORCE,
  };
  const ports = config.agentPortRange;
  const specs = new AgentSpecs({
    database,
    secrets: new SecretBox(config.encryptionKey),
    image,
    ports,
    subnetPool: config.agentSubnets,
    aiBaseUrl: `http://host.docker.internal:${config.agentAiPort}/v1`,
  });
  return Promise.all([
    Worker.create({
      ...common,
      ...code,
      taskQueue: PLATFORM_TASK_QUEUE,
      activities: createRecordActivities(new AgentRecords(database, ports)),
    }),
    Worker.create({
      ...common,
      taskQueue: containersTaskQueue(host),
      activities: createContainerActivities({
        containers,
        specs,
        checkIntervalMs: config.watchdogCheckIntervalMs,
      }),
      maxConcurrentActivityTaskExecutions: MAX_ENGINE_CALLS,
      // Cancellations are heard by heartbeats; held back, they would take as long as the timeout.
      maxHeartbeatThrottleInterval: '2 seconds',
    }),
  ]);
}
