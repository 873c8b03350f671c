import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import { runtimeImages } from '../src/docker/containers/image-name.js';
import type { HostEgress } from '../src/docker/egress/host-egress.js';
import type { RequestSeconds } from '../src/platform/http/request-seconds.js';
import { HeartbeatSchedules } from '../temporal/heartbeat-schedules.js';
import {
  accountDeletionRuns,
  busMessageRuns,
  cloneRuns,
  emailRuns,
  mailRuns,
  processorEventRuns,
  royaltySplitRuns,
  securityEventRuns,
  swarmRuns,
  verificationRuns,
  videoRuns,
} from '../temporal/row-runs.js';
import { removeSchedules } from '../temporal/schedules.js';
import { startTaskRun } from '../temporal/task-runs.js';
import { TaskSchedules } from '../temporal/task-schedules.js';
import { endX402PaymentsPeriodically } from './end-x402-payments.js';
import { finishRemovalsPeriodically } from './finish-removals.js';
import { followDocker } from './follow-docker.js';
import { followRowsPeriodically, type FollowedRows } from './follow-rows.js';
import { observeRadioPeriodically } from './observe-radio.js';
import { handOverPeriodically, type Handed } from './hand-over.js';
import {
  accountDeletions,
  agentEmails,
  busMessages,
  clones,
  mails,
  processorEvents,
  royaltySplits,
  securityEvents,
  swarms,
  taskRuns,
  verifications,
  videos,
} from './handed-rows.js';
import { HostEvents } from './host-events.js';
import { measureMemories } from './measure-memories.js';
import {
  createHostWorkers,
  createPlatformWorkers,
  type HostDependencies,
  type PlatformDependencies,
} from './platform-worker.js';
import type { Polling } from './polling.js';
import { prepareTemporal, type PrepareDependencies } from './prepare-temporal.js';
import { recoverPeriodically } from './recover.js';
import { removeImagesPeriodically } from './remove-images.js';
import type { HostLease } from './report-host.js';
import { runWorkers, type Part } from './run-together.js';
import { followedHeartbeats } from './schedule-heartbeats.js';
import { followedTasks } from './schedule-tasks.js';
import { sampleAgents } from './sample-agents.js';
import { sendNotifications } from './send-notifications.js';
import { serveHost } from './serve-host.js';

/** Milliseconds after which agents are probed even without events from their Docker. */
const FIRST_EVENTS_MS = 30_000;

/** Dependencies of the parts that start once Temporal was reached. */
export interface ConnectedWorker extends PlatformDependencies {
  readonly client: Client;
  readonly polling: Polling;
  readonly log: Logger;
}

export interface ConnectedHost extends HostDependencies {
  readonly lease: HostLease;
  readonly hostEgress: HostEgress;
  readonly polling: Polling;
  readonly requests: RequestSeconds;
  readonly log: Logger;
}

/**
 * Returns the part that keeps search attributes and schedules; `host` is the Docker host on the worker's
 * machine.
 */
export const temporalPart = (temporal: PrepareDependencies): Part => ({
  name: 'schedules',
  run: (signal) => prepareTemporal(temporal, signal),
});

export function platformParts(worker: ConnectedWorker): Part[] {
  const { client, database, gate, log, services, supervisors } = worker;
  const icecast = services.radio?.icecast;
  const handOver = (name: string, rows: Handed): Part => ({
    name,
    run: (signal) => handOverPeriodically({ database, log }, rows, signal),
  });
  const removing = {
    database,
    supervisors,
    removeSchedules: (removed: string) => removeSchedules(client, removed),
    log,
  };
  const follow = <Row>(name: string, rows: FollowedRows<Row>): Part => ({
    name,
    run: (signal) => followRowsPeriodically(rows, log, signal),
  });
  const heartbeats = { database, schedules: new HeartbeatSchedules(client), log };
  const { taskRuns: runs } = services;
  const tasks = { database, schedules: new TaskSchedules(client), runs, log };
  return [
    {
      name: 'platform',
      run: (signal) => runWorkers(() => createPlatformWorkers(worker), signal, worker.polling),
    },
    {
      name: 'recovery',
      run: (signal) => recoverPeriodically({ database, supervisors, services, log }, signal),
    },
    handOver('deletions of accounts', accountDeletions(accountDeletionRuns(client))),
    handOver('security events', securityEvents(securityEventRuns(client))),
    handOver('events of the payment processor', processorEvents(processorEventRuns(client))),
    handOver('mail', mails(database, mailRuns(client))),
    handOver('e-mails to agents', agentEmails(emailRuns(client))),
    handOver('clones', clones(cloneRuns(client))),
    handOver('splits', royaltySplits(royaltySplitRuns(client))),
    handOver('swarms', swarms(services.swarms, swarmRuns(client))),
    handOver('videos', videos(services.videoStore, videoRuns(client))),
    handOver('verifications', verifications(verificationRuns(client))),
    handOver('messages of the bus', busMessages(busMessageRuns(client))),
    handOver(
      'runs of tasks',
      taskRuns(database, (run) => startTaskRun(client, run)),
    ),
    follow('heartbeats', followedHeartbeats(heartbeats)),
    follow('scheduled tasks', followedTasks(tasks)),
    { name: 'removals of hosts', run: (signal) => finishRemovalsPeriodically(removing, signal) },
    {
      name: 'x402 payments',
      run: (signal) => endX402PaymentsPeriodically({ database, log }, signal),
    },
    {
      name: 'notifications',
      run: (signal) => sendNotifications({ database, notifier: services.notifier, log }, signal),
    },
    ...(icecast
      ? [
          {
            name: 'radio',
            run: (signal: AbortSignal) =>
              observeRadioPeriodically({ database, icecast, log }, signal),
          },
        ]
      : []),
    { name: 'database gate', run: (signal) => gate.keep(database, log, signal) },
  ];
}

/** Returns the parts for the worker's Docker host, while it owns the lease on the host's name. */
export function hostParts(worker: ConnectedHost): Part[] {
  const { database, docker, hostEgress, hostServices, lease, log, requests, settings } = worker;
  const { supervisors } = worker;
  const { host } = settings.agents;
  const following = {
    database,
    supervisors,
    docker,
    log,
    host,
    onConnected: () => hostEgress.dockerIsBack(),
  };
  const hostEvents = new HostEvents(following);
  const { memorySizes } = hostServices;
  const measuring = { database, supervisors, memorySizes, docker, host, log };
  const { usual } = runtimeImages(settings.agents);
  const onceLeased = (name: string, run: Part['run']): Part => ({
    name,
    async run(signal) {
      await lease.held(signal);
      await run(signal);
    },
  });
  return [
    onceLeased('host', async (signal) => {
      await hostEvents.untilNotified(FIRST_EVENTS_MS, signal);
      await runWorkers(() => createHostWorkers(worker), signal, worker.polling);
    }),
    onceLeased('Docker events', (signal) => followDocker(following, signal, hostEvents)),
    onceLeased('memory sizes', (signal) => measureMemories(measuring, signal)),
    onceLeased('metrics of agents', (signal) =>
      sampleAgents({ database, docker, host, log }, signal),
    ),
    onceLeased('removal of images', (signal) =>
      removeImagesPeriodically({ database, docker, usual, log }, signal),
    ),
    {
      name: 'host listener',
      run: (signal) => serveHost({ settings, database, docker, lease, log, requests }, signal),
    },
  ];
}

/** Returns a part that has run since before Temporal was reached; it and all other parts end together. */
export const alreadyRunning = (
  name: string,
  running: Promise<void>,
  stop: AbortController,
): Part => ({
  name,
  run(signal) {
    signal.addEventListener('abort', () => stop.abort(), { once: true });
    return running;
  },
});
