import { Client } from '@temporalio/client';
import type { NativeConnection } from '@temporalio/worker';
import { configuredDocker } from '../src/docker/containers/docker-host.js';
import { Database } from '../src/platform/database/database.js';
import { requireFitDatabase } from '../src/platform/database/start-check.js';
import { createLogger } from '../src/platform/process/log.js';
import { onShutdown, reportReady, runProcess } from '../src/platform/process/process-lifecycle.js';
import { createAccountDeletions, createWorkerServices } from '../src/services.js';
import { loadSettings } from '../src/settings.js';
import { temporalConnection } from '../temporal/connection.js';
import { Supervisors } from '../temporal/supervisors.js';
import { connectPatiently } from './connect.js';
import { DatabaseGate } from './database-gate.js';
import { openHostEgress } from './host-egress.js';
import { openLocalRepair, type TemporalAtHand } from './local-repair.js';
import { alreadyRunning, hostParts, platformParts, type ConnectedWorker } from './parts.js';
import { prepareSearchAttributes } from './prepare-temporal.js';
import { HostLease } from './report-host.js';
import { runTogether } from './run-together.js';
import { installRuntime } from './temporal-runtime.js';
import { builtWorkflows } from './workflow-code.js';

/** Milliseconds for the last lines of the log. */
const EXIT_AFTER_MS = 5_000;

await runProcess(main);
// Open handles have no work left.
setTimeout(() => process.exit(), EXIT_AFTER_MS).unref();

async function main(): Promise<void> {
  const ended = onShutdown();
  const settings = loadSettings();
  const log = createLogger('worker', settings.process);
  installRuntime(log, settings.temporal.workerMetrics);

  const database = new Database(settings.database.url);
  const hostEgress = openHostEgress(settings, log);
  const docker = configuredDocker(settings, () => hostEgress.mayStart());
  const stop = new AbortController();
  void ended.then(() => stop.abort());
  const host = {
    id: settings.agents.host,
    capacity: settings.agents.hostCapacity,
    ports: settings.agents.portRange,
    url: settings.hosts.listener?.url,
  };
  const services = createWorkerServices({ settings, database, docker, log });
  const takeoverFrom = settings.agents.hostTakeover;
  const { runtime } = settings.containers;
  const lease = new HostLease({
    database,
    docker,
    host,
    runtime,
    egress: () => hostEgress.state,
    takeoverFrom,
    log,
  });
  const atHand: TemporalAtHand = { connected: undefined };
  if (!(await requireFitDatabase(database, log, stop.signal))) return database.close();
  // The lease on the host's name comes first: local repairs depend on it.
  await lease.report();
  const leasing = lease.keep(stop.signal);
  leasing.catch(() => stop.abort()); // Thrown to whoever waits for the lease.
  // Local repair comes second: Temporal may be unavailable, and agents down, since the machine started.
  const mayAct = () => !lease.isDoubtful;
  const local = await openLocalRepair({ settings, database, docker, log, atHand, mayAct });
  const repairing = local.run(stop.signal);
  const guarding = hostEgress.keep(stop.signal);
  const place = temporalConnection(settings.temporal);
  const { namespace } = place;
  let connection: NativeConnection | undefined;
  try {
    connection = await connectPatiently(place, {
      log,
      signal: stop.signal,
      outlivesNamespace: local.knowsAgents,
    });
    if (!connection) return await leasing;
    const client = new Client({ connection, namespace });
    const supervisors = new Supervisors(client, settings.temporal.uiUrl);
    atHand.connected = { connection, namespace, supervisors };
    const worker: ConnectedWorker = {
      connection,
      client,
      namespace,
      settings,
      services,
      supervisors,
      database,
      docker,
      accountDeletions: createAccountDeletions({ settings, database, docker, supervisors, log }),
      ...local.shared,
      lease,
      hostEgress,
      log,
      code: builtWorkflows(),
      gate: new DatabaseGate(),
    };
    await services.modelDiscovery.start();
    await prepareSearchAttributes({ connection, client, namespace, host: host.id, log });
    const running = runTogether(
      [
        ...platformParts(worker),
        ...hostParts(worker),
        alreadyRunning('local repair', repairing, stop),
        alreadyRunning("agents' networks", guarding, stop),
        alreadyRunning('host report', leasing, stop),
      ],
      stop.signal,
    );
    reportReady();
    await running;
  } finally {
    stop.abort();
    services.modelDiscovery.close();
    await Promise.all([repairing, guarding]);
    await database.close();
    await connection?.close();
  }
}
