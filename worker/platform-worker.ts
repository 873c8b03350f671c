import type { NativeConnection } from '@temporalio/worker';
import { Worker, type WorkerOptions } from '@temporalio/worker';
import { createAccountDeletionActivities } from '../activities/account-deletion.js';
import {
  createHeartbeatActivities,
  createHeartbeatRecordActivities,
} from '../activities/heartbeats.js';
import { guardSteps, guardWatchdog } from '../activities/guarded.js';
import { createBillingActivities } from '../activities/billing.js';
import { createCloneActivities } from '../activities/clones.js';
import {
  createEmailActivities,
  createEmailRecordActivities,
  createEmailTurnActivities,
} from '../activities/email.js';
import { createContainerActivities } from '../activities/containers.js';
import { createReconcileActivities } from '../activities/reconcile.js';
import { createRecordActivities } from '../activities/records.js';
import { createReleaseActivities, createReleaseRecordActivities } from '../activities/releases.js';
import { createHousekeepingActivities } from '../activities/housekeeping.js';
import { createSecurityEventActivities } from '../activities/security-events.js';
import { createSplitActivities } from '../activities/splits.js';
import { createStartActivities } from '../activities/starts.js';
import { createSupervisionActivities, type OnSupervisionPass } from '../activities/supervision.js';
import { createBusActivities, createBusRecordActivities } from '../activities/bus.js';
import { createMailActivities } from '../activities/mail.js';
import { createMoneyActivities } from '../activities/money.js';
import { createRetentionActivities } from '../activities/retention.js';
import { createSwarmRecordActivities, createSwarmTurnActivities } from '../activities/swarms.js';
import {
  createMeasurementActivities,
  createVerificationRecordActivities,
} from '../activities/verification.js';
import { createTaskRunRecordActivities, createTaskTurnActivities } from '../activities/tasks.js';
import { createVideoActivities, createVideoRecordActivities } from '../activities/videos.js';
import { createWatchdogActivities } from '../activities/watchdog.js';
import type { AccountDeletions } from '../src/accounts/accounts/account-deletions.js';
import type { HostLimiters } from '../src/agents/watchdog/host-limiters.js';
import type { StartProgress } from '../src/agents/watchdog/start-progress.js';
import { supervisedOf } from '../src/agents/operations/supervisors.js';
import { FairLimiter } from '../src/lib/fair-limiter.js';
import type { Supervisors } from '../temporal/supervisors.js';
import type { Settings } from '../src/settings.js';
import type { DockerHost } from '../src/docker/containers/docker-host.js';
import type { Database } from '../src/platform/database/database.js';
import type { DockerAbsences } from '../src/agents/watchdog/docker-absence.js';
import type { AgentGuard } from '../src/agents/local-repair/agent-guard.js';
import type { HostServices, WorkerServices } from '../src/services.js';
import { builtHelper } from '../src/workspace-helper.js';
import {
  BUS_TASK_QUEUE,
  EMAIL_TASK_QUEUE,
  MAIL_TASK_QUEUE,
  MEDIA_TASK_QUEUE,
  PLATFORM_TASK_QUEUE,
  containersTaskQueue,
  heartbeatsTaskQueue,
  startsTaskQueue,
} from '../workflows/ids.js';
import { gatedTuner, type DatabaseGate } from './database-gate.js';
import type { WorkflowCode } from './workflow-code.js';

/** Time for running activities when the worker must end, before they are cancelled and then cut off. */
const SHUTDOWN_GRACE = '10 seconds';
const SHUTDOWN_FORCE = '20 seconds';

/** Cancellations are delivered with heartbeats; throttled ones would take as long as the timeout. */
const HEARTBEAT_THROTTLE = '2 seconds';

/**
 * Runs in memory, at a third of a megabyte each. Nearly all supervisors are idle, and replaying one is cheap.
 */
const MAX_CACHED_WORKFLOWS = 500;

/** Concurrent calls to Temporal. */
const limiter = new FairLimiter({ atOnce: 20, perOwner: 20 });

/**
 * Steps in flight, including those that only watch or wait for a slot: more than a host has agents. Work in
 * Docker is bounded by `HostLimiters`.
 */
const MAX_STEPS = 20_000;

/**
 * Starts that wait in the worker; the rest wait in Temporal at no cost. More than one owner has agents, so
 * that no owner waits behind all agents of another.
 */
const MAX_STARTS = 200;

/** Maximum number of agents' turns in the worker, running and waiting ones; the rest wait in Temporal. */
const MAX_TURNS = 1_000;

const MAX_MAILS = 20;

/** Maximum number of concurrent requests to the provider of agents' e-mails. */
const MAX_EMAIL_CALLS = 50;

/** Maximum number of concurrent requests to the video provider, including downloads of files. */
const MAX_VIDEO_STEPS = 20;

/** Maximum number of concurrent deliveries of the bus, including those that wait for a place at their host. */
const MAX_DELIVERIES = 200;

export interface WorkerDependencies {
  readonly connection: NativeConnection;
  readonly namespace: string;
  readonly settings: Settings;
  readonly services: WorkerServices;
  readonly hostServices: HostServices;
  readonly accountDeletions: AccountDeletions;
  readonly supervisors: Supervisors;
  readonly database: Database;
  readonly docker: DockerHost;
  /** Serializes the supervisors' steps with the host's own repairs. */
  readonly guard: AgentGuard;
  /** The periods without Docker, as the host's own repair observes them. */
  readonly absences: DockerAbsences;
  readonly limiters: HostLimiters;
  readonly progress: StartProgress;
  /** Loader of the program of helper containers; the build's program by default. */
  readonly helper?: () => Promise<string>;
  readonly code: WorkflowCode;
  readonly gate: DatabaseGate;
  readonly onSupervisionPass?: OnSupervisionPass;
  readonly onLedgerChecked?: (differences: number) => void;
}

export type PlatformDependencies = Omit<
  WorkerDependencies,
  'absences' | 'docker' | 'guard' | 'hostServices' | 'limiters' | 'progress'
>;

export type HostDependencies = Omit<WorkerDependencies, 'accountDeletions' | 'code' | 'gate'>;

/**
 * Creates the worker for workflows and records, and those for mails, the bus and videos: all may run anywhere, with
 * the folder of media.
 */
export async function createPlatformWorkers(dependencies: PlatformDependencies): Promise<Worker[]> {
  const { accountDeletions, code, database, gate, services, settings, supervisors } = dependencies;
  const { busDelivery, heartbeats, mails, processorEvents } = services;
  const { releases, retention, securityEvents } = services;
  const { agentPorts: ports, operationStore: operations, watchdogStore: states } = services;
  const { clonePayments: payments, clones, splits } = services;
  const { watchdog } = settings.agents;
  return Promise.all([
    Worker.create({
      ...commonOptions(dependencies),
      ...code,
      taskQueue: PLATFORM_TASK_QUEUE,
      maxCachedWorkflows: MAX_CACHED_WORKFLOWS,
      tuner: gatedTuner(gate),
      activities: {
        ...createRecordActivities({ operations, ports, settings: watchdog, states }),
        ...createReleaseRecordActivities(releases),
        ...createHeartbeatRecordActivities(heartbeats),
        ...createHousekeepingActivities(database),
        ...createMoneyActivities({
          database,
          chain: services.ledgerChain,
          knownChains: services.knownChains,
          sessionSettings: settings.paymentSessions,
          onLedgerChecked: dependencies.onLedgerChecked,
        }),
        ...createAccountDeletionActivities(accountDeletions),
        ...createSupervisionActivities({
          database,
          ensure: (agent) => limiter.run({ owner: agent.userId }, () => supervisors.ensure(agent)),
          endStuckChildren: (agent) =>
            limiter.run({ owner: agent.userId }, () => supervisors.endStuckChildren(agent)),
          checkIntervalMs: watchdog.checkIntervalMs,
          onPass: dependencies.onSupervisionPass,
        }),
        ...createRetentionActivities(retention),
        ...createSecurityEventActivities(securityEvents),
        ...createBillingActivities(
          processorEvents,
          services.processorReadings,
          services.billingReconciliation,
        ),
        ...createCloneActivities({ payments, store: clones, supervisors }),
        ...createSplitActivities(splits),
        ...createBusRecordActivities(busDelivery),
        ...createVerificationRecordActivities(services.verifications),
        ...createVideoRecordActivities(services.videoStore),
        ...createSwarmRecordActivities(services.swarms, services.ownerTurns),
        ...createTaskRunRecordActivities({ runs: services.taskRuns, turns: services.ownerTurns }),
        ...createEmailRecordActivities(services.agentEmails, services.ownerTurns),
      },
    }),
    Worker.create({
      ...commonOptions(dependencies),
      taskQueue: MAIL_TASK_QUEUE,
      activities: createMailActivities(mails),
      maxConcurrentActivityTaskExecutions: MAX_MAILS,
    }),
    ...(settings.email.apiKey === undefined
      ? []
      : [
          Worker.create({
            ...commonOptions(dependencies),
            taskQueue: EMAIL_TASK_QUEUE,
            activities: createEmailActivities(services.agentEmails),
            maxConcurrentActivityTaskExecutions: MAX_EMAIL_CALLS,
          }),
        ]),
    Worker.create({
      ...commonOptions(dependencies),
      taskQueue: BUS_TASK_QUEUE,
      activities: createBusActivities(busDelivery),
      maxConcurrentActivityTaskExecutions: MAX_DELIVERIES,
    }),
    Worker.create({
      ...commonOptions(dependencies),
      taskQueue: MEDIA_TASK_QUEUE,
      activities: createVideoActivities(services.videoSteps),
      maxConcurrentActivityTaskExecutions: MAX_VIDEO_STEPS,
    }),
  ]);
}

/** Creates one host's workers: for its Docker daemon, for its agents' starts, and for their heartbeats. */
export async function createHostWorkers(dependencies: HostDependencies): Promise<Worker[]> {
  const { absences, docker, guard, hostServices, limiters } = dependencies;
  const { progress, services, settings, supervisors } = dependencies;
  const { memorySizes, reconciliation } = hostServices;
  const { clones, heartbeats, releases, volumes } = services;
  const { ownerTurns: turns, taskRuns: runs } = services;
  const { agentPorts: ports, containerSpecs: specs, watchdogStore: states } = services;
  const { host, watchdog } = settings.agents;
  const common = commonOptions(dependencies);
  const { helper = builtHelper } = dependencies;
  const onDocker = { clones, docker, helper, specs, volumes, memorySizes, limiters, progress };
  return Promise.all([
    Worker.create({
      ...common,
      taskQueue: containersTaskQueue(host),
      activities: {
        ...guardSteps(guard, {
          ...createContainerActivities(onDocker),
          ...createReleaseActivities({ ...onDocker, releases }),
        }),
        ...createMeasurementActivities({ docker, specs, limiters, store: services.verifications }),
        ...createReconcileActivities({
          reconciliation,
          host,
          wake: async (agents) => {
            await Promise.all(
              agents.map((agent) =>
                limiter.run({ owner: agent.userId }, () =>
                  supervisors.checkNow(supervisedOf(agent)),
                ),
              ),
            );
          },
        }),
        ...guardWatchdog(
          guard,
          docker.containers,
          createWatchdogActivities({
            ...onDocker,
            absences,
            ports,
            states,
            checkIntervalMs: watchdog.checkIntervalMs,
            degradedCheckIntervalMs: watchdog.degradedCheckIntervalMs,
          }),
        ),
      },
      maxConcurrentActivityTaskExecutions: MAX_STEPS,
      maxHeartbeatThrottleInterval: HEARTBEAT_THROTTLE,
    }),
    Worker.create({
      ...common,
      taskQueue: startsTaskQueue(host),
      activities: guardSteps(guard, createStartActivities(onDocker)),
      maxConcurrentActivityTaskExecutions: MAX_STARTS,
      maxHeartbeatThrottleInterval: HEARTBEAT_THROTTLE,
    }),
    Worker.create({
      ...common,
      taskQueue: heartbeatsTaskQueue(host),
      activities: {
        ...createHeartbeatActivities(heartbeats, limiters),
        ...createSwarmTurnActivities({
          limiters,
          store: services.swarms,
          turns: services.ownerTurns,
        }),
        ...createTaskTurnActivities({ runs, turns, limiters }),
        ...createEmailTurnActivities({ emails: services.agentEmails, turns, limiters }),
      },
      maxConcurrentActivityTaskExecutions: MAX_TURNS,
    }),
  ]);
}

const commonOptions = ({
  connection,
  namespace,
}: Pick<WorkerDependencies, 'connection' | 'namespace'>): Pick<
  WorkerOptions,
  'connection' | 'namespace' | 'shutdownGraceTime' | 'shutdownForceTime'
> => ({
  connection,
  namespace,
  shutdownGraceTime: SHUTDOWN_GRACE,
  shutdownForceTime: SHUTDOWN_FORCE,
});
