import { Client } from '@temporalio/client';
import type { NativeConnection } from '@temporalio/worker';
import { Database } from '../src/platform/database/database.js';
import { requireFitDatabase } from '../src/platform/database/start-check.js';
import { createLogger } from '../src/platform/process/log.js';
import { periodically } from '../src/platform/process/periodically.js';
import { onShutdown, reportReady, runProcess } from '../src/platform/process/process-lifecycle.js';
import { databaseChecks } from '../src/platform/operators/database-checks.js';
import { exportPools } from '../src/platform/operators/database-metrics.js';
import { openOperators } from '../src/platform/operators/open-operators.js';
import { Readiness } from '../src/platform/operators/readiness.js';
import { createPaymentServices } from '../src/payment-services.js';
import { logServing } from '../src/platform/operators/serving-line.js';
import { loadPaymentSettings } from '../src/settings.js';
import { ChainSigners } from '../temporal/chain-signers.js';
import { temporalConnection } from '../temporal/connection.js';
import { nameOf } from '../temporal/start-check.js';
import { nodeCheck, pollingCheck } from './checks.js';
import { connectPatiently } from './connect.js';
import { handOverPeriodically } from './hand-over.js';
import { busSignatures, payments, paymentSessions } from './handed-rows.js';
import { createPaymentWorker } from './payment-worker.js';
import { Polling } from './polling.js';
import { runTogether, runWorkers } from './run-together.js';
import { installRuntime } from './temporal-runtime.js';
import { PollingMetrics } from './worker-metrics.js';

/* The process that makes payments is separate because it is the only one with the operator's key. */

/** Milliseconds between two checks that final payments are still on chain. */
const RESTORE_MS = 5_000;

/** Milliseconds for the last lines of the log. */
const EXIT_AFTER_MS = 5_000;

await runProcess(main);
// Open handles have no work left.
setTimeout(() => process.exit(), EXIT_AFTER_MS).unref();

async function main(): Promise<void> {
  const ended = onShutdown();
  const settings = loadPaymentSettings();
  const log = createLogger('payments', settings.process);
  const metrics = new PollingMetrics(await installRuntime(log));
  metrics.collectDefaults();
  const stop = new AbortController();
  void ended.then(() => stop.abort());
  const place = temporalConnection(settings.temporal);
  const { namespace } = place;
  const database = new Database(settings.database.url);
  exportPools(metrics.registry, database);
  let connection: NativeConnection | undefined;
  const polling = new Polling();
  const readiness = new Readiness({
    ...databaseChecks(database),
    temporal: pollingCheck(() => connection, place, polling),
    node: nodeCheck(settings.chain),
  });
  void ended.then(() => readiness.ends());
  const operators = await openOperators({
    settings,
    listen: settings.temporal.paymentsMetrics,
    variable: 'PAYMENTS_METRICS_LISTEN',
    metrics,
    readiness,
    log,
  });
  try {
    if (!(await requireFitDatabase(database, log, stop.signal))) return;
    connection = await connectPatiently(place, { log, signal: stop.signal });
    if (!connection) return;
    const services = createPaymentServices({ settings, database, log });
    const signers = new ChainSigners(new Client({ connection, namespace }));
    const worker = { connection, namespace, services };
    const running = runTogether(
      [
        {
          name: 'payments',
          run: (signal) =>
            runWorkers(async () => [await createPaymentWorker(worker)], signal, polling),
        },
        {
          name: 'hand-over of payments',
          run: (signal) =>
            handOverPeriodically({ database, log }, payments(database, signers), signal),
        },
        {
          name: 'payment sessions',
          run: (signal) =>
            handOverPeriodically({ database, log }, paymentSessions(services), signal),
        },
        {
          name: 'signatures of the bus',
          run: (signal) =>
            handOverPeriodically({ database, log }, busSignatures(services.busSigner), signal),
        },
        {
          name: 'restoring of payments',
          run: (signal) =>
            periodically(
              {
                everyMs: RESTORE_MS,
                failure: 'payments could not be checked against the chain',
                log,
                work: () => services.signers.restore(),
              },
              signal,
            ),
        },
      ],
      stop.signal,
    );
    readiness.serves();
    reportReady();
    logServing(log, {
      addresses: [operators.url],
      databaseUrl: settings.database.url,
      temporal: nameOf(place),
    });
    await running;
  } finally {
    await operators.close();
    await database.close();
    await connection?.close();
  }
}
