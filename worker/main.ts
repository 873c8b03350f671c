import { Client } from '@temporalio/client';
import type { NativeConnection } from '@temporalio/worker';
import { HeartbeatSchedules } from '../temporal/heartbeat-schedules.js';
import { removeSchedules } from '../temporal/schedules.js';
import { Supervisors } from '../temporal/supervisors.js';
import { loadSettings } from '../src/settings.js';
import { configuredDocker } from '../src/containers/docker-host.js';
import { Database } from '../src/database/database.js';
import { createLogger } from '../src/log.js';
import { reportFailure, reportReady, onShutdown } from '../src/process-lifecycle.js';
import { createWorkerServices } from '../src/services.js';
import { temporalConnection } from '../temporal/connection.js';
import { connect, connectPatiently } from './connect.js';
import { createHostWorkers, createPlatformWorkers } from './platform-worker.js';
import { finishRemovalsPeriodically } from './finish-removals.js';
import { DatabaseGate } from './database-gate.js';
import { followDocker } from './follow-docker.js';
import { HostNews } from './host-news.js';
import { openLocalRepair, type TemporalAtHand } from './local-repair.js';
import { prepareSearchAttributes, prepareTemporal } from './prepare-temporal.js';
import { recoverPeriodically } from './recover.js';
import { HostLease } from './report-host.js';
import { runTogether, runWorkers } from './run-together.js';
import { scheduleHeartbeatsPeriodically } from './schedule-heartbeats.js';
import { sendNotifications } from './send-notifications.js';
import { serveHost } from './serve-host.js';
import { installRuntime } from './temporal-runtime.js';
import { builtWorkflows } from './workflow-code.js';

/** For the last lines of the log. */
const EXIT_AFTER_MS = 5_000;

/** Agents are looked at without news of their Docker where none can be had for so long. */
const FIRST_NEWS_MS = 30_000;

try {
  await main();
} catch (error) {
  reportFailure(error);
  process.exitCode = 1;
}
process.disconnect?.();
// What holds the process open now has nothing left to do.
setTimeout(() => process.exit(), EXIT_AFTER_MS).unref();

async function main(): Promise<void> {
  const ended = onShutdown();
  const settings = loadSettings();
  const log = createLogger('worker', settings.process);
  installRuntime(log, settings.temporal.workerMetrics);

  const database = new Database(settings.database.url);
  const docker = configuredDocker(settings);
  const stop = new AbortController();
  void ended.then(() => stop.abort());
  const host = {
    id: settings.agents.host,
    capacity: settings.agents.hostCapacity,
    ports: settings.agents.portRange,
    url: settings.hosts.listener?.url,
  };
  const gate = new DatabaseGate();
  const services = createWorkerServices({ settings, database, docker });
  const takeoverFrom = settings.agents.hostTakeover;
  const lease = new HostLease({ database, docker, host, takeoverFrom, log });
  const atHand: TemporalAtHand = { connected: undefined };
  // First of all: Temporal may be away, and agents down, since the machine has started.
  const local = await openLocalRepair({ settings, database, docker, log, atHand });
  const repairing = local.run(stop.signal);
  const { connectionOptions, namespace } = temporalConnection(settings.temporal);
  let connection: NativeConnection | undefined;
  try {
    connection = local.knowsAgents
      ? await connectPatiently(connectionOptions, log, stop.signal)
      : await connect(connectionOptions);
    if (!connection) return;
    const client = new Client({ connection, namespace });
    const supervisors = new Supervisors(client, settings.temporal.uiUrl);
    const schedules = new HeartbeatSchedules(client);
    atHand.connected = { connection, namespace, supervisors };
    const temporal = { connection, client, namespace, host: host.id, log };
    const workers = {
      connection,
      namespace,
      settings,
      services,
      supervisors,
      database,
      docker,
      ...local.shared,
      code: builtWorkflows(),
      gate,
    };
    const following = { database, supervisors, docker, log, host: host.id };
    const news = new HostNews(following);
    await prepareSearchAttributes(temporal);
    await lease.report();
    const running = runTogether(
      [
        {
          name: 'platform',
          run: (signal) => runWorkers(() => createPlatformWorkers(workers), signal),
        },
        {
          name: 'host',
          async run(signal) {
            await lease.held(signal);
            await news.untilTold(FIRST_NEWS_MS, signal);
            await runWorkers(() => createHostWorkers(workers), signal);
          },
        },
        {
          name: 'Docker events',
          async run(signal) {
            await lease.held(signal);
            await followDocker(following, signal, news);
          },
        },
        {
          name: 'local repair',
          run(signal) {
            signal.addEventListener('abort', () => stop.abort(), { once: true });
            return repairing;
          },
        },
        {
          name: 'recovery',
          run: (signal) =>
            recoverPeriodically({ database, supervisors, services: workers.services, log }, signal),
        },
        {
          name: 'heartbeats',
          run: (signal) => scheduleHeartbeatsPeriodically({ database, schedules, log }, signal),
        },
        {
          name: 'removals of hosts',
          run: (signal) =>
            finishRemovalsPeriodically(
              {
                database,
                supervisors,
                removeSchedules: (removed) => removeSchedules(client, removed),
                log,
              },
              signal,
            ),
        },
        {
          name: 'host listener',
          run: (signal) => serveHost({ settings, database, docker, lease, log }, signal),
        },
        { name: 'host report', run: (signal) => lease.keep(signal) },
        {
          name: 'notifications',
          run: (signal) =>
            sendNotifications({ database, notifier: services.notifier, log }, signal),
        },
        { name: 'database gate', run: (signal) => gate.keep(database, log, signal) },
        { name: 'schedules', run: (signal) => prepareTemporal(temporal, signal) },
      ],
      stop.signal,
    );
    reportReady();
    await running;
  } finally {
    stop.abort();
    await repairing;
    await database.close();
    await connection?.close();
  }
}
