import { Client } from '@temporalio/client';
import { NativeConnection, TransportError, type NativeConnectionOptions } from '@temporalio/worker';
import { ensureSearchAttributes } from '../temporal/ensure-search-attributes.js';
import { HeartbeatSchedules } from '../temporal/heartbeat-schedules.js';
import { putSchedules } from '../temporal/schedules.js';
import { Supervisors } from '../temporal/supervisors.js';
import { loadSettings } from '../src/settings.js';
import { configuredDocker } from '../src/containers/docker-host.js';
import { Database } from '../src/database/database.js';
import { UnavailableError } from '../src/errors.js';
import { createLogger } from '../src/log.js';
import { reportFailure, reportReady, onShutdown } from '../src/process-lifecycle.js';
import { createWorkerServices } from '../src/services.js';
import { temporalConnection } from '../temporal/connection.js';
import { createWorkers } from './platform-worker.js';
import { followDocker } from './follow-docker.js';
import { recoverPeriodically } from './recover.js';
import { reportPeriodically } from './report-host.js';
import { installRuntime } from './temporal-runtime.js';
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
  const settings = loadSettings();
  const log = createLogger('worker', settings.process);
  installRuntime(log, settings.temporal.workerMetrics);

  const { connectionOptions, namespace } = temporalConnection(settings.temporal);
  const connection = await connect(connectionOptions);
  await ensureSearchAttributes(connection, namespace);
  const database = new Database(settings.database.url);
  const client = new Client({ connection, namespace });
  const supervisors = new Supervisors(client, settings.temporal.uiUrl);
  const heartbeatSchedules = new HeartbeatSchedules(client);
  const docker = configuredDocker(settings);
  const workers = await createWorkers({
    connection,
    namespace,
    settings,
    services: createWorkerServices({ settings, database, docker }),
    supervisors,
    database,
    docker,
    code: builtWorkflows(),
  });

  const recovering = new AbortController();
  const running = Promise.all(workers.map((worker) => worker.run()));
  recoverPeriodically({ database, supervisors, heartbeatSchedules, log }, recovering.signal);
  const following = followDocker(
    { database, supervisors, docker, log, host: settings.agents.host },
    recovering.signal,
  );
  const host = {
    id: settings.agents.host,
    capacity: settings.agents.hostCapacity,
    ports: settings.agents.portRange,
  };
  await reportPeriodically({ database, docker, host, log }, recovering.signal);
  await putSchedules(client, settings.agents.host);
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
