import { Client } from '@temporalio/client';
import type { NativeConnection } from '@temporalio/worker';
import { Database } from '../src/platform/database/database.js';
import { requireFitDatabase } from '../src/platform/database/start-check.js';
import { createLogger } from '../src/platform/process/log.js';
import { onShutdown, reportReady, runProcess } from '../src/platform/process/process-lifecycle.js';
import { databaseChecks } from '../src/platform/operators/database-checks.js';
import { exportPools } from '../src/platform/operators/database-metrics.js';
import { openOperators } from '../src/platform/operators/open-operators.js';
import { Readiness } from '../src/platform/operators/readiness.js';
import { createAccountDeletions, createWorkerServices } from '../src/services.js';
import { logServing } from '../src/platform/operators/serving-line.js';
import { loadSettings } from '../src/settings.js';
import { temporalConnection } from '../temporal/connection.js';
import { nameOf } from '../temporal/start-check.js';
import { Supervisors } from '../temporal/supervisors.js';
import { pollingCheck } from './checks.js';
import { connectPatiently } from './connect.js';
import { DatabaseGate } from './database-gate.js';
import { createHostRole } from './host-role.js';
import type { TemporalAtHand } from './local-repair.js';
import { hostParts, platformParts, temporalPart, type ConnectedWorker } from './parts.js';
import { exportCertificate, exportLedger, exportPlatform } from './platform-metrics.js';
import { Polling } from './polling.js';
import { prepareSearchAttributes } from './prepare-temporal.js';
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
  const stop = new AbortController();
  void ended.then(() => stop.abort());
  const { workerRoles: roles } = settings.hosts;
  const atHand: TemporalAtHand = { connected: undefined };
  const hostRole = roles.has('host')
    ? createHostRole({ settings, database, log, atHand })
    : undefined;
  if (hostRole) metrics.exportEgress(() => hostRole.hostEgress.state);
  const { tls } = settings.hosts.listener ?? {};
  if (hostRole && tls) exportCertificate(metrics.registry, tls.cert);
  const onLedgerChecked = roles.has('workflows') ? exportLedger(metrics.registry) : undefined;
  if (roles.has('workflows')) exportPlatform(metrics.registry, database);
  const services = createWorkerServices({ settings, database, log });
  const place = temporalConnection(settings.temporal);
  const polling = new Polling();
  const readiness = new Readiness({
    ...databaseChecks(database),
    temporal: pollingCheck(() => atHand.connected?.connection, place, polling),
    ...hostRole?.checks,
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
  const host = await hostRole?.start(stop);
  if (host) metrics.exportLimiters(host.shared.limiters);
  const { namespace } = place;
  let connection: NativeConnection | undefined;
  try {
    connection = await connectPatiently(place, {
      log,
      signal: stop.signal,
      outlivesNamespace: host?.knowsAgents ?? false,
    });
    if (!connection) return await host?.leasing;
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
      accountDeletions: createAccountDeletions({
        settings,
        database,
        docker: hostRole?.docker,
        supervisors,
        log,
      }),
      log,
      code: builtWorkflows(),
      gate: new DatabaseGate(),
      polling,
      onSupervisionPass: (...pass) => metrics.recordSupervision(...pass),
      ...(onLedgerChecked && { onLedgerChecked }),
    };
    await services.modelDiscovery.start();
    const temporal = { connection, client, namespace, host: hostRole?.id, log };
    await prepareSearchAttributes(temporal);
    const running = runTogether(
      [
        ...(roles.has('workflows') ? platformParts(worker) : []),
        ...(host
          ? [...hostParts({ ...worker, ...host.shared, requests: metrics.requests }), ...host.parts]
          : []),
        temporalPart(temporal),
      ],
      stop.signal,
    );
    readiness.serves();
    reportReady();
    logServing(log, {
      addresses: [hostRole && settings.hosts.listener?.url, operators.url],
      databaseUrl: settings.database.url,
      temporal: nameOf(place),
      hosts: hostRole ? [hostRole.id] : [],
    });
    await running;
  } finally {
    stop.abort();
    services.modelDiscovery.close();
    await Promise.all([host?.ended(), operators.close()]);
    await database.close();
    await connection?.close();
  }
}
