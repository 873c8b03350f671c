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
import type { Observation } from '../src/agents/observation.js';
import { admit, type OperationKind } from '../src/agents/operation-rules.js';
import { bringUp } from './bring-up.js';
import { failureReason } from './failure-reason.js';
import { containersTaskQueue, provisionAgentId } from './ids.js';
import { provisionAgent } from './provision-agent.js';
import * as retries from './retries.js';
import { AGENT_ID, AGENT_OWNER, AGENT_PHASE } from './search-attributes.js';
import {
  OPERATION_CONFLICT,
  checkNow,
  configureAgent,
  deleteAgent,
  restartAgent,
  startAgent,
  stopAgent,
  type OperationAdmitted,
  type OperationRequest,
  type SuperviseAgentInput,
} from './supervise-agent-messages.js';

/** Far below where the engine ends a run (51,200), so that a replay stays quick. */
const MAX_HISTORY_EVENTS = 500;

/**
 * Milliseconds between two attempts to bring a container back by itself, whether the last one
 * failed or the container ended again after it.
 */
const REVIVAL_PAUSE_MS = 120_000;

interface Operation {
  readonly id: string;
  readonly kind: OperationKind;
  /** Cancelled when a deletion takes over. */
  readonly scope: CancellationScope;
}

type Outcome = 'succeeded' | 'failed' | 'cancelled';

/**
 * The one supervisor of one agent, for as long as the agent lives: the only writer of its
 * container. Operations reach it as Updates and run one at a time; in between it watches.
 */
export async function superviseAgent(input: SuperviseAgentInput): Promise<void> {
  const agent: AgentRef = { agentId: input.agentId, userId: input.userId, host: input.host };
  const taskQueue = containersTaskQueue(agent.host);
  const record = proxyLocalActivities<RecordActivities>(retries.records);
  const engine = proxyActivities<ContainerActivities>({ ...retries.engineCall, taskQueue });
  const removal = proxyActivities<ContainerActivities>({ ...retries.removal, taskQueue });
  const watch = proxyActivities<ContainerActivities>({ ...retries.healthWatch, taskQueue });

  let { desired, provisioned, observed } = input;
  let current: Operation | undefined;
  /** At most two: what was asked for, and the deletion that takes over. */
  const pending: Operation[] = input.operation
    ? [newOperation(input.operation.id, input.operation.kind)]
    : [];
  let revival: CancellationScope | undefined;
  /** Unix milliseconds of the last attempt to bring it back; 0 lets the next one go at once. */
  let revivedAt = 0;
  let wake = false;
  let deleted = false;

  const handle = (
    definition: typeof startAgent,
    kind: OperationKind,
    description: string,
  ): void => {
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
  };
  handle(startAgent, 'start', 'Start the container and wait until it answers');
  handle(stopAgent, 'stop', 'Stop the container');
  handle(restartAgent, 'restart', 'Stop and start the container');
  handle(configureAgent, 'configure', 'Apply a new configuration');
  handle(deleteAgent, 'delete', 'Take away the container and all that belongs to it');
  setHandler(checkNow, () => {
    wake = true;
    revivedAt = 0;
  });

  while (!deleted) {
    const next = pending.shift();
    if (next) {
      await runOperation(next);
    } else if (workflowInfo().historyLength > MAX_HISTORY_EVENTS && allHandlersFinished()) {
      await continueAsNew<typeof superviseAgent>({
        ...agent,
        desired,
        provisioned,
        ...(!wake && observed && { observed }),
      });
    } else if (desired === 'running' && provisioned) {
      await watchContainer();
    } else {
      await condition(() => pending.length > 0);
    }
  }
  await condition(allHandlersFinished);

  function newest(): Operation | undefined {
    return pending.at(-1) ?? current;
  }

  /** Answers at once: how it goes stands in the `operations` table, under the id that is returned. */
  function accept(kind: OperationKind, request: OperationRequest): OperationAdmitted {
    const busyWith = newest();
    if (busyWith && admit(kind, busyWith.kind) === 'join') return { operationId: busyWith.id };
    // Only a deletion gets here while something runs.
    for (const preempted of [current, ...pending]) preempted?.scope.cancel();
    revival?.cancel();
    const operation = newOperation(request.operationId, kind);
    pending.push(operation);
    return { operationId: operation.id };
  }

  async function runOperation(operation: Operation): Promise<void> {
    const { id, kind, scope } = operation;
    current = operation;
    wake = false;
    if (!scope.consideredCancelled) {
      const begin = await record.beginOperation(agent, { id, kind, runId: workflowInfo().runId });
      if (begin !== 'begun') {
        deleted = begin === 'gone';
        current = undefined;
        return;
      }
    }
    const { status, error } = await outcomeOf(operation);
    showPhase(settledPhase(status), error);
    // From here on the next operation is let in; it begins when this one is put down as ended.
    current = undefined;
    // Also when the supervisor itself was cancelled: nobody else tells how the operation ended.
    await CancellationScope.nonCancellable(() =>
      record.finishOperation(agent, { id, kind, status, error }),
    );
  }

  async function outcomeOf({
    kind,
    scope,
  }: Operation): Promise<{ status: Outcome; error: string | null }> {
    if (scope.consideredCancelled) return { status: 'cancelled', error: null };
    showPhase(PHASES[kind], null);
    try {
      await scope.run(() => perform(kind));
      deleted = kind === 'delete';
      observed = desired === 'running' ? 'healthy' : undefined;
      return { status: 'succeeded', error: null };
    } catch (failure) {
      observed = undefined;
      const reason = failureReason(failure);
      // What fails while it is being cancelled would not have been let finish either.
      const status = isCancellation(failure) || scope.consideredCancelled ? 'cancelled' : 'failed';
      log.warn('operation did not succeed', { kind, status, reason });
      return { status, error: status === 'failed' ? reason : null };
    }
  }

  async function perform(kind: OperationKind): Promise<void> {
    switch (kind) {
      case 'provision':
      case 'start':
        desired = 'running';
        return provisioned ? bringUp(agent) : provision();
      case 'stop':
        desired = 'stopped';
        if (provisioned) await engine.stopContainer(agent);
        return;
      case 'restart':
        desired = 'running';
        if (!provisioned) return provision();
        await engine.stopContainer(agent);
        return bringUp(agent);
      case 'configure':
        if (!provisioned || desired === 'stopped') return;
        await engine.stopContainer(agent);
        return bringUp(agent);
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

  async function watchContainer(): Promise<void> {
    const scope = new CancellationScope();
    // An operation or a wake-up ends the watch; the watch itself returns only what changed.
    const seen = await scope.run(() =>
      Promise.race([
        watch.watchHealth(agent, observed ?? null),
        condition(() => pending.length > 0 || wake).then(() => undefined),
      ]),
    );
    scope.cancel();
    if (seen === undefined) {
      if (wake) observed = undefined;
      wake = false;
      return;
    }
    observed = seen.health;
    if (seen.health === 'stopped') return revive(seen);
    showPhase(seen.health === 'healthy' ? 'running' : 'error', seen.reason);
    await record.recordObservation(agent, seen);
  }

  /**
   * A container that ended without being told to is started again, for as long as it takes, but
   * not over and over: the next time only after a pause. An operation cuts this short, and runs once the call to the engine that is under way has ended.
   */
  async function revive(seen: Observation): Promise<void> {
    showPhase('error', seen.reason);
    await record.recordObservation(agent, seen);
    observed = undefined;
    const rest = revivedAt + REVIVAL_PAUSE_MS - Date.now();
    if (rest > 0) await condition(() => pending.length > 0 || wake, rest);
    if (pending.length > 0 || wake) return;
    revivedAt = Date.now();
    revival = new CancellationScope();
    try {
      await revival.run(() => bringUp(agent));
      observed = 'healthy';
      showPhase('running', null);
    } catch (error) {
      if (revival.consideredCancelled) return;
      const reason = failureReason(error);
      log.warn('container did not come back', { reason });
      await record.recordObservation(agent, { ...seen, reason });
      await condition(() => pending.length > 0 || wake, REVIVAL_PAUSE_MS);
    } finally {
      revival = undefined;
    }
  }

  function settledPhase(status: Outcome): string {
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

const PHASES: Record<OperationKind, string> = {
  provision: 'provisioning',
  start: 'starting',
  stop: 'stopping',
  restart: 'restarting',
  configure: 'configuring',
  delete: 'deleting',
};

function newOperation(id: string, kind: OperationKind): Operation {
  return { id, kind, scope: new CancellationScope() };
}
