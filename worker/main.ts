import { Client } from '@temporalio/client';
import { Runtime, type NativeConnection } from '@temporalio/worker';
import {
  accountDeletionRuns,
  cloneRuns,
  mailRuns,
  paymentSessionRuns,
  royaltySplitRuns,
  securityEventRuns,
} from '../temporal/row-runs.js';
import { HeartbeatSchedules } from '../temporal/heartbeat-schedules.js';
import { removeSchedules } from '../temporal/schedules.js';
import { Supervisors } from '../temporal/supervisors.js';
import { loadSettings } from '../src/settings.js';
import { configuredDocker } from '../src/containers/docker-host.js';
import { runtimeImages } from '../src/containers/image-name.js';
import { Database } from '../src/database/database.js';
import { createLogger } from '../src/log.js';
import { onShutdown, reportReady, runProcess } from '../src/process-lifecycle.js';
import { createAccountDeletions, createWorkerServices } from '../src/services.js';
import { temporalConnection } from '../temporal/connection.js';
import { connect, connectPatiently } from './connect.js';
import { createHostWorkers, createPlatformWorkers } from './platform-worker.js';
import { finishRemovalsPeriodically } from './finish-removals.js';
import { DatabaseGate } from './database-gate.js';
import { openHostEgress } from './host-egress.js';
import { followDocker } from './follow-docker.js';
import {
  accountDeletions,
  clones,
  mails,
  paymentSessions,
  royaltySplits,
  securityEvents,
} from './handed-rows.js';
import { handOverPeriodically } from './hand-over.js';
import { HostEvents } from './host-events.js';
import { openLocalRepair, type TemporalAtHand } from './local-repair.js';
import { measureMemories } from './measure-memories.js';
import { prepareSearchAttributes, prepareTemporal } from './prepare-temporal.js';
import { recoverPeriodically } from './recover.js';
import { removeImagesPeriodically } from './remove-images.js';
import { HostLease } from './report-host.js';
import { runTogether, runWorkers } from './run-together.js';
import { scheduleHeartbeatsPeriodically } from './schedule-heartbeats.js';
import { sendNotifications } from './send-notifications.js';
import { serveHost } from './serve-host.js';
import { tellTurns } from './tell-turns.js';
import { installRuntime } from './temporal-runtime.js';
import { builtWorkflows } from './workflow-code.js';

/** For the last lines of the log. */
const EXIT_AFTER_MS = 5_000;

/** Agents are looked at without events of their Docker where none can be had for so long. */
const FIRST_EVENTS_MS = 30_000;

await runProcess(main);
// What holds the process open now has nothing left to do.
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
  const gate = new DatabaseGate();
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
  // First of all: whose name it is, for what the host does by itself.
  await lease.report();
  const leasing = lease.keep(stop.signal);
  leasing.catch(() => stop.abort()); // thrown to whoever waits for it
  // And then: Temporal may be away, and agents down, since the machine has started.
  const mayAct = () => !lease.isDoubtful;
  const local = await openLocalRepair({ settings, database, docker, log, atHand, mayAct });
  const repairing = local.run(stop.signal);
  const guarding = hostEgress.keep(stop.signal);
  const { connectionOptions, namespace } = temporalConnection(settings.temporal);
  let connection: NativeConnection | undefined;
  try {
    connection = local.knowsAgents
      ? await connectPatiently(connectionOptions, log, stop.signal)
      : await connect(connectionOptions);
    if (!connection) return await leasing;
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
      accountDeletions: createAccountDeletions({ settings, database, docker, supervisors, log }),
      supervisors,
      database,
      docker,
      ...local.shared,
      code: builtWorkflows(),
      gate,
    };
    const following = {
      database,
      supervisors,
      docker,
      log,
      host: host.id,
      onConnected: () => hostEgress.dockerIsBack(),
    };
    const hostEvents = new HostEvents(following);
    await prepareSearchAttributes(temporal);
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
            await hostEvents.untilTold(FIRST_EVENTS_MS, signal);
            await runWorkers(() => createHostWorkers(workers), signal);
          },
        },
        {
          name: 'Docker events',
          async run(signal) {
            await lease.held(signal);
            await followDocker(following, signal, hostEvents);
          },
        },
        {
          name: 'memory sizes',
          async run(signal) {
            await lease.held(signal);
            const { memorySizes } = services;
            const measuring = { database, supervisors, memorySizes, docker, host: host.id, log };
            await measureMemories(measuring, signal);
          },
        },
        {
          name: 'figures of turns',
          run: (signal) => tellTurns(local.shared.turns, Runtime.instance().metricMeter, signal),
        },
        {
          name: 'local repair',
          run(signal) {
            signal.addEventListener('abort', () => stop.abort(), { once: true });
            return repairing;
          },
        },
        {
          name: "agents' networks",
          run(signal) {
            signal.addEventListener('abort', () => stop.abort(), { once: true });
            return guarding;
          },
        },
        {
          name: 'recovery',
          run: (signal) =>
            recoverPeriodically({ database, supervisors, services: workers.services, log }, signal),
        },
        {
          name: 'deletions of accounts',
          run: (signal) =>
            handOverPeriodically(
              { database, log },
              accountDeletions(accountDeletionRuns(client)),
              signal,
            ),
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
        {
          name: 'host report',
          run(signal) {
            signal.addEventListener('abort', () => stop.abort(), { once: true });
            return leasing;
          },
        },
        {
          name: 'removal of images',
          async run(signal) {
            await lease.held(signal);
            const { usual } = runtimeImages(settings.agents);
            await removeImagesPeriodically({ database, docker, usual, log }, signal);
          },
        },
        {
          name: 'notifications',
          run: (signal) =>
            sendNotifications({ database, notifier: services.notifier, log }, signal),
        },
        {
          name: 'security events',
          run: (signal) =>
            handOverPeriodically(
              { database, log },
              securityEvents(securityEventRuns(client)),
              signal,
            ),
        },
        {
          name: 'mail',
          run: (signal) =>
            handOverPeriodically({ database, log }, mails(database, mailRuns(client)), signal),
        },
        {
          name: 'clones',
          run: (signal) =>
            handOverPeriodically({ database, log }, clones(cloneRuns(client)), signal),
        },
        {
          name: 'splits',
          run: (signal) =>
            handOverPeriodically(
              { database, log },
              royaltySplits(royaltySplitRuns(client)),
              signal,
            ),
        },
        {
          name: 'payment sessions',
          run: (signal) =>
            handOverPeriodically(
              { database, log },
              paymentSessions(database, paymentSessionRuns(client)),
              signal,
            ),
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
    await Promise.all([repairing, guarding]);
    await database.close();
    await connection?.close();
  }
}
