import { Client } from '@temporalio/client';
import type { NativeConnection } from '@temporalio/worker';
import { configuredDocker } from '../src/docker/containers/docker-host.js';
import { Database } from '../src/platform/database/database.js';
import { requireFitDatabase } from '../src/platform/database/start-check.js';
import { createLogger } from '../src/platform/process/log.js';
import { onShutdown, reportReady, runProcess } from '../src/platform/process/process-lifecycle.js';
import { databaseChecks } from '../src/platform/operators/database-checks.js';
import { exportPools } from '../src/platform/operators/database-metrics.js';
import { CheckFailedError, Readiness } from '../src/platform/operators/readiness.js';
import { createAccountDeletions, createWorkerServices } from '../src/services.js';
import { logServing } from '../src/platform/operators/serving-line.js';
import { loadSettings } from '../src/settings.js';
import { temporalConnection } from '../temporal/connection.js';
import { awayError, checkNamespace, nameOf } from '../temporal/start-check.js';
import { Supervisors } from '../temporal/supervisors.js';
import { connectPatiently } from './connect.js';
import { DatabaseGate } from './database-gate.js';
import { openHostEgress } from './host-egress.js';
import { openLocalRepair, type TemporalAtHand } from './local-repair.js';
import { openOperators } from './operators.js';
import { alreadyRunning, hostParts, platformParts, type ConnectedWorker } from './parts.js';
import { Polling } from './polling.js';
import { prepareSearchAttributes } from './prepare-temporal.js';
import { HostLease } from './report-host.js';
import { runTogether } from './run-together.js';
import { installRuntime } from './temporal-runtime.js';
import { WorkerMetrics } from './worker-metrics.js';
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
  const metrics = new WorkerMetrics(await installRuntime(log));
  metrics.collectDefaults();

  const database = new Database(settings.database.url);
  exportPools(metrics.registry, database);
  const hostEgress = openHostEgress(settings, log);
  const docker = configuredDocker(settings, () => hostEgress.mayStart());
  metrics.exportEgress(() => hostEgress.state);
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
  const place = temporalConnection(settings.temporal);
  const polling = new Polling();
  const readiness = new Readiness({
    ...databaseChecks(database),
    async temporal() {
      if (!atHand.connected) throw awayError(place);
      await checkNamespace(atHand.connected.connection, place);
      polling.require();
    },
    async docker() {
      if (!(await docker.available())) throw new CheckFailedError('Docker does not answer');
    },
    lease() {
      if (!lease.isHeld)
        throw new CheckFailedError(`This engine does not have the name ${host.id}`);
    },
  });
  void ended.then(() => readiness.ends());
  const operators = await openOperators({
    settings,
    listen: settings.temporal.workerMetrics,
    variable: 'WORKER_METRICS_LISTEN',
    metrics,
    readiness,
    log,
  });
  if (!(await requireFitDatabase(database, log, stop.signal))) return database.close();
  // The lease on the host's name comes first: local repairs depend on it.
  await lease.report();
  const leasing = lease.keep(stop.signal);
  leasing.catch(() => stop.abort()); // Thrown to whoever waits for the lease.
  // Local repair comes second: Temporal may be unavailable, and agents down, since the machine started.
  const mayAct = () => !lease.isDoubtful;
  const local = await openLocalRepair({ settings, database, docker, log, atHand, mayAct });
  metrics.exportLimiters(local.shared.limiters);
  const repairing = local.run(stop.signal);
  const guarding = hostEgress.keep(stop.signal);
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
      polling,
      requests: metrics.requests,
      onSupervisionPass: (...pass) => metrics.recordSupervision(...pass),
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
    readiness.serves();
    reportReady();
    logServing(log, {
      addresses: [settings.hosts.listener?.url, operators.url],
      databaseUrl: settings.database.url,
      temporal: nameOf(place),
      hosts: [host.id],
    });
    await running;
  } finally {
    stop.abort();
    services.modelDiscovery.close();
    await Promise.all([repairing, guarding, operators.close()]);
    await database.close();
    await connection?.close();
  }
}
