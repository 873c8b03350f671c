import {
  ApplicationFailure,
  CancellationScope,
  ParentClosePolicy,
  allHandlersFinished,
  condition,
  continueAsNew,
  executeChild,
  isCancellation,
  log,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { ContainerActivities } from '../activities/containers.js';
import type { RecordActivities } from '../activities/records.js';
import type { AgentRef } from '../src/agents/agent-ref.js';
import { admit, type OperationKind } from '../src/agents/operation-rules.js';
import type { WatchdogState, WatchdogTransition } from '../src/agents/watchdog.js';
import { bringUp } from './bring-up.js';
import { failureReason } from './failure-reason.js';
import { containersTaskQueue, provisionAgentId } from './ids.js';
import { provisionAgent } from './provision-agent.js';
import { isUnharmed, replaceContainer } from './replace-container.js';
import * as retries from './retries.js';
import { AGENT_ID, AGENT_OWNER, AGENT_PHASE } from './search-attributes.js';
import {
  OPERATION_CONFLICT,
  OPERATION_UPDATES,
  type OperationAdmitted,
  type OperationRequest,
  type SuperviseAgentInput,
} from './supervise-agent-messages.js';
import { Watchdog } from './watchdog.js';

/** Far below where Temporal ends a run (51,200), so that a replay stays quick. */
const MAX_HISTORY_EVENTS = 500;

const isLong = (): boolean => workflowInfo().historyLength > MAX_HISTORY_EVENTS;

interface Operation {
  readonly id: string;
  readonly kind: OperationKind;
  /** Cancelled when a deletion takes over. */
  readonly scope: CancellationScope;
}

/** How an operation ended. */
interface Ending {
  readonly status: 'succeeded' | 'failed' | 'cancelled';
  readonly error: string | null;
  /** It failed, and the agent is as it was before. */
  readonly unharmed?: boolean;
}

/**
 * The one supervisor of one agent, for as long as the agent lives: the only writer of its
 * container. Operations reach it as Updates and run one at a time; in between it watches.
 */
export async function superviseAgent(input: SuperviseAgentInput): Promise<void> {
  const agent: AgentRef = { agentId: input.agentId, userId: input.userId, host: input.host };
  const taskQueue = containersTaskQueue(agent.host);
  const record = proxyLocalActivities<RecordActivities>(retries.records);
  const docker = proxyActivities<ContainerActivities>({ ...retries.dockerCall, taskQueue });
  const removal = proxyActivities<ContainerActivities>({ ...retries.removal, taskQueue });

  let { desired, provisioned } = input;
  let current: Operation | undefined;
  /** At most two: what was asked for, and the deletion that takes over. */
  const pending: Operation[] = input.operation
    ? [newOperation(input.operation.id, input.operation.kind)]
    : [];
  let deleted = false;

  const watchdog = new Watchdog({
    agent,
    memory: input.watchdog ?? {
      state: desired === 'running' ? 'starting' : 'stopped',
      since: Date.now(),
      crashes: [],
      repairAttempts: 0,
      lastRepair: null,
    },
    observed: input.observed,
    operationWaits: () => pending.length > 0,
    operationRuns: () => current !== undefined,
    show: showPhase,
  });
  let stateBefore = watchdog.memory.state;

  for (const [kind, description] of Object.entries(DESCRIPTIONS)) {
    handle(kind as keyof typeof DESCRIPTIONS, description); // the keys of this very constant
  }

  while (!deleted) {
    // What brings the loop here is answered first: in a replay it may come with what was before.
    await condition(allHandlersFinished);
    const next = pending.shift();
    if (next) {
      await runOperation(next);
    } else if (isLong() && watchdog.noticesAreSent()) {
      const { observed } = watchdog;
      await continueAsNew<typeof superviseAgent>({
        ...agent,
        desired,
        provisioned,
        watchdog: watchdog.memory,
        ...(observed && { observed }),
      });
    } else if (desired === 'running' && provisioned) {
      await watchdog.step();
    } else {
      await condition(() => pending.length > 0 || watchdog.isCalled());
      await watchdog.keepStopped(provisioned);
    }
  }
  await condition(allHandlersFinished);

  function handle(kind: keyof typeof OPERATION_UPDATES, description: string): void {
    const definition = OPERATION_UPDATES[kind];
    setHandler<OperationAdmitted, [OperationRequest], typeof definition>(
      definition,
      (request) => accept(kind, request),
      {
        description,
        validator: () => {
          const busyWith = newest();
          if (admit(kind, busyWith?.kind) === 'conflict') {
            throw ApplicationFailure.nonRetryable(
              `Another operation is running: ${busyWith?.kind}`,
              OPERATION_CONFLICT,
            );
          }
        },
      },
    );
  }

  function newest(): Operation | undefined {
    return pending.at(-1) ?? current;
  }

  /** Answers at once: how it goes stands in the `operations` table, under the id that is returned. */
  function accept(kind: OperationKind, request: OperationRequest): OperationAdmitted {
    const busyWith = newest();
    if (busyWith && admit(kind, busyWith.kind) === 'join') return { operationId: busyWith.id };
    // Only a deletion gets here while something runs.
    for (const preempted of [current, ...pending]) preempted?.scope.cancel();
    const operation = newOperation(request.operationId, kind);
    pending.push(operation);
    return { operationId: operation.id };
  }

  async function runOperation(operation: Operation): Promise<void> {
    const { id, kind, scope } = operation;
    current = operation;
    watchdog.forgetCalls();
    if (!scope.consideredCancelled) {
      const { runId } = workflowInfo();
      const transition = beginning(kind);
      const begin = await record.beginOperation(agent, { id, kind, runId, transition });
      if (begin !== 'begun') {
        deleted = begin === 'gone';
        current = undefined;
        return;
      }
    }
    const end = await outcomeOf(operation);
    const transition = ending(kind, end);
    if (!transition) showPhase(settledPhase(end.status), end.error);
    // From here on the next operation is let in; it begins when this one is put down as ended.
    current = undefined;
    // Also when the supervisor itself was cancelled: nobody else tells how the operation ended.
    await CancellationScope.nonCancellable(() =>
      record.finishOperation(agent, { id, kind, ...end, transition }),
    );
  }

  async function outcomeOf(operation: Operation): Promise<Ending> {
    const { kind, scope } = operation;
    if (scope.consideredCancelled) return { status: 'cancelled', error: null };
    showPhase(PHASES[kind], null);
    try {
      await scope.run(() => perform(operation));
      deleted = kind === 'delete';
      watchdog.left(desired === 'running' ? 'healthy' : undefined);
      // That the container ended is what was asked for.
      if (kind === 'stop') watchdog.forgetCalls();
      return { status: 'succeeded', error: null };
    } catch (failure) {
      watchdog.left(undefined);
      const reason = failureReason(failure);
      // What fails while it is being cancelled would not have been let finish either.
      const status = isCancellation(failure) || scope.consideredCancelled ? 'cancelled' : 'failed';
      log.warn('operation did not succeed', { kind, status, reason });
      const error = status === 'failed' ? reason : null;
      return { status, error, ...(isUnharmed(failure) && { unharmed: true }) };
    }
  }

  async function perform({ id, kind }: Operation): Promise<void> {
    switch (kind) {
      case 'provision':
      case 'start':
        desired = 'running';
        if (!provisioned) return provision();
        // What runs and is not well would be taken for what was asked for.
        if (UNWELL.includes(stateBefore)) await docker.stopContainer(agent);
        return bringUp(agent);
      case 'stop':
        desired = 'stopped';
        if (provisioned) await docker.stopContainer(agent);
        return;
      case 'restart':
        desired = 'running';
        if (!provisioned) return provision();
        await docker.stopContainer(agent);
        return bringUp(agent);
      case 'repair':
        desired = 'running';
        return provisioned ? repair() : provision();
      case 'configure':
      case 'update':
      case 'reset-memory':
      case 'restore':
        return replaceContainer(agent, { operationId: id, kind, desired, provisioned });
      case 'delete':
        // Also when it fails: what is left of the agent must not be started again.
        desired = 'stopped';
        await removal.removeContainer(agent);
        await removal.removeNetwork(agent);
        await removal.removeVolume(agent);
    }
  }

  async function provision(): Promise<void> {
    await executeChild(provisionAgent, {
      workflowId: provisionAgentId(agent.agentId),
      args: [agent],
      cancellationType: 'WAIT_CANCELLATION_COMPLETED',
      parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
      typedSearchAttributes: [
        { key: AGENT_ID, value: agent.agentId },
        { key: AGENT_OWNER, value: agent.userId },
      ],
      staticSummary: `Provision agent ${agent.agentId}`,
    });
    provisioned = true;
  }

  async function repair(): Promise<void> {
    const outcome = await watchdog.runRepair(await record.watchdogSettings());
    if (outcome.repaired) return;
    throw ApplicationFailure.nonRetryable(outcome.reason ?? 'The agent does not answer');
  }

  /** What an operation changes for the watchdog when it begins. */
  function beginning(kind: OperationKind): WatchdogTransition | undefined {
    stateBefore = watchdog.memory.state;
    const starts = kind === 'start' || kind === 'restart' || kind === 'repair';
    if (starts) watchdog.clearCrashes();
    if (kind === 'repair' && provisioned) return watchdog.enter('repairing', 'operation', null);
    // Until it has stopped, it is still what it was.
    if (kind === 'stop' || kind === 'delete' || !(starts || desired === 'running'))
      return undefined;
    return watchdog.enter('starting', 'operation', null);
  }

  /** What the end of an operation changes for the watchdog. */
  function ending(kind: OperationKind, end: Ending): WatchdogTransition | undefined {
    const { status, error, unharmed } = end;
    if (deleted || status === 'cancelled') return undefined;
    const isUp = desired === 'running' && provisioned;
    if (status === 'succeeded') {
      return isUp
        ? watchdog.enter('running', kind === 'repair' ? 'repaired' : 'healthy', null)
        : watchdog.enter('stopped', 'operation', null);
    }
    if (kind === 'stop' || kind === 'delete') return undefined;
    if (kind === 'repair') return watchdog.enter('crash_loop', 'repair_failed', error);
    if (unharmed) return watchdog.enter(stateBefore, 'operation', error);
    // What is left is looked at next, and judged as it is found.
    return watchdog.enter(provisioned ? 'starting' : 'stopped', 'start_failed', error);
  }

  function settledPhase(status: Ending['status']): string {
    if (deleted) return 'deleted';
    return status === 'succeeded' ? desired : 'error';
  }

  function showPhase(phase: string, reason: string | null): void {
    upsertSearchAttributes([{ key: AGENT_PHASE, value: phase }]);
    setCurrentDetails(
      [`**${phase}**, desired ${desired}`, ...(reason === null ? [] : [reason])].join('\n\n'),
    );
  }
}

const UNWELL: readonly WatchdogState[] = ['degraded', 'repairing', 'crash_loop'];

const PHASES: Record<OperationKind, string> = {
  provision: 'provisioning',
  start: 'starting',
  stop: 'stopping',
  restart: 'restarting',
  configure: 'configuring',
  update: 'updating',
  repair: 'repairing',
  'reset-memory': 'resetting memory',
  restore: 'restoring memory',
  delete: 'deleting',
};

const DESCRIPTIONS: Record<keyof typeof OPERATION_UPDATES, string> = {
  start: 'Start the container and wait until it answers',
  stop: 'Stop the container',
  restart: 'Stop and start the container',
  configure: 'Apply a new configuration; go back to the old one if the agent does not come up',
  update: 'Run another version; go back to the old one if the agent does not come up',
  repair: 'Kill the gateway, start it again and verify it',
  'reset-memory': 'Archive what the agent remembers, and begin anew',
  restore: 'Go back to what an archive remembers',
  delete: 'Take away the container and all that belongs to it',
};

function newOperation(id: string, kind: OperationKind): Operation {
  return { id, kind, scope: new CancellationScope() };
}
