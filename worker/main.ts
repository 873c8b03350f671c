import { Client } from '@temporalio/client';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import {
  NativeConnection,
  Runtime,
  TransportError,
  type NativeConnectionOptions,
} from '@temporalio/worker';
import { ensureSearchAttributes } from '../temporal/ensure-search-attributes.js';
import { HeartbeatSchedules } from '../temporal/heartbeat-schedules.js';
import { putSchedules } from '../temporal/schedules.js';
import { Supervisors } from '../temporal/supervisors.js';
import { loadConfig } from '../src/config.js';
import { connectContainers } from '../src/containers/connect-containers.js';
import { runtimeImage } from '../src/containers/image-name.js';
import { Database } from '../src/database/database.js';
import { UnavailableError } from '../src/errors.js';
import { createLogger } from '../src/log.js';
import { reportFailure, reportReady, onShutdown } from '../src/process-lifecycle.js';
import { createWorkers } from './platform-worker.js';
import { followDocker } from './follow-docker.js';
import { recoverPeriodically } from './recover.js';
import { reportPeriodically } from './report-host.js';
import { temporalLogger } from './temporal-logger.js';
import { builtWorkflows } from './workflow-code.js';

try {
  await main();
} catch (error) {
  reportFailure(error);
  process.exitCode = 1;
}
process.disconnect?.();

async function main(): Promise<void> {
  const ended = onShutdown();
  const config = loadConfig();
  const log = createLogger('worker', config);
  Runtime.install({ logger: temporalLogger(log), shutdownSignals: [] });

  const { connectionOptions, namespace = 'default' } = loadClientConnectConfig();
  const connection = await connect(connectionOptions);
  await ensureSearchAttributes(connection, namespace);
  const database = new Database(config.databaseUrl);
  const client = new Client({ connection, namespace });
  const supervisors = new Supervisors(client, config.temporalUiUrl);
  const heartbeatSchedules = new HeartbeatSchedules(client);
  const containers = connectContainers(config);
  const workers = await createWorkers({
    connection,
    namespace,
    config,
    database,
    containers,
    code: builtWorkflows(),
    host: config.agentHost,
    image: runtimeImage(config),
  });

  const recovering = new AbortController();
  const running = Promise.all(workers.map((worker) => worker.run()));
  recoverPeriodically({ database, supervisors, heartbeatSchedules, log }, recovering.signal);
  const following = followDocker(
    { database, supervisors, containers, log, host: config.agentHost },
    recovering.signal,
  );
  const host = {
    id: config.agentHost,
    capacity: config.agentHostCapacity,
    ports: config.agentPortRange,
  };
  await reportPeriodically({ database, containers, host, log }, recovering.signal);
  await putSchedules(client, config.agentHost);
  reportReady();
  void ended.then(() => {
    recovering.abort();
    for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
  });
  try {
    await running;
  } finally {
    recovering.abort();
    await following;
    await database.close();
    await connection.close();
  }
}

/** Says in a sentence, instead of in the transport's own words, that nobody is there. */
async function connect(options: NativeConnectionOptions): Promise<NativeConnection> {
  try {
    return await NativeConnection.connect(options);
  } catch (cause) {
    if (!(cause instanceof TransportError)) throw cause;
    throw new UnavailableError(
      `Temporal does not answer at ${options.address ?? 'its usual address'}`,
      { cause },
    );
  }
}
