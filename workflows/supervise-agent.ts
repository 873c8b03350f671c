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
import { failureReason } from './failure-reason.js';
import { containersTaskQueue, provisionAgentId } from './ids.js';
import { provisionAgent } from './provision-agent.js';
import * as retries from './retries.js';
import { AGENT_PHASE } from './search-attributes.js';
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

/** How long a container that would not come back is left alone before the next attempt. */
const REVIVAL_PAUSE = '2 minutes';

interface Operation {
  readonly id: string;
  readonly kind: OperationKind;
  /** Cancelled when a deletion takes over. */
  readonly scope: CancellationScope;
}

/**
 * The one supervisor of one agent, for as long as the agent lives: the only writer of its
 * container. Operations reach it as Updates and run one at a time; in between it watches.
 */
export async function superviseAgent(input: SuperviseAgentInput): Promise<void> {
  const agent: AgentRef = { agentId: input.agentId, userId: input.userId, host: input.host };
  const taskQueue = containersTaskQueue(agent.host);
  const record = proxyLocalActivities<RecordActivities>(retries.records);
  const engine = proxyActivities<ContainerActivities>({ ...retries.engineCall, taskQueue });
  const image = proxyActivities<ContainerActivities>({ ...retries.imageCall, taskQueue });
  const readiness = proxyActivities<ContainerActivities>({ ...retries.readinessWait, taskQueue });
  const removal = proxyActivities<ContainerActivities>({ ...retries.removal, taskQueue });
  const watch = proxyActivities<ContainerActivities>({ ...retries.healthWatch, taskQueue });

  let { desired, provisioned, observed } = input;
  let current: Operation | undefined;
  let next: Operation | undefined;
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
          if (admit(kind, (next ?? current)?.kind) === 'conflict') {
            throw ApplicationFailure.nonRetryable(
              `Another operation is running: ${(next ?? current)?.kind}`,
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
  });

  if (input.operation) {
    next = newOperation(input.operation.id, input.operation.kind);
  }

  while (!deleted) {
    if (next) {
      await runOperation(next);
    } else if (workflowInfo().historyLength > MAX_HISTORY_EVENTS && allHandlersFinished()) {
      await continueAsNew<typeof superviseAgent>({ ...agent, desired, provisioned, observed });
    } else if (desired === 'running' && provisioned) {
      await watchContainer();
    } else {
      await condition(() => next !== undefined);
    }
  }
  await condition(allHandlersFinished);

  /** Answers at once: how it goes stands in the `operations` table, under the id that is returned. */
  function accept(kind: OperationKind, request: OperationRequest): OperationAdmitted {
    const busyWith = next ?? current;
    if (busyWith && admit(kind, busyWith.kind) === 'join') return { operationId: busyWith.id };
    next = newOperation(request.operationId, kind);
    // Only a deletion gets here while something runs.
    current?.scope.cancel();
    return { operationId: next.id };
  }

  async function runOperation(operation: Operation): Promise<void> {
    const { id, kind, scope } = operation;
    current = operation;
    next = undefined;
    wake = false;
    const begin = await record.beginOperation(agent, { id, kind, runId: workflowInfo().runId });
    if (begin !== 'begun') {
      deleted = begin === 'gone';
      current = undefined;
      return;
    }
    showPhase(PHASES[kind], null);
    let status: 'succeeded' | 'failed' | 'cancelled' = 'succeeded';
    let error: string | null = null;
    try {
      await scope.run(() => perform(kind));
      deleted = kind === 'delete';
      observed = desired === 'running' ? 'healthy' : undefined;
    } catch (failure) {
      status = isCancellation(failure) ? 'cancelled' : 'failed';
      error = status === 'failed' ? failureReason(failure) : null;
      observed = undefined;
      log.warn('operation did not succeed', { kind, status, reason: error });
    }
    showPhase(settledPhase(status), error);
    await record.finishOperation(agent, { id, kind, status, error });
    current = undefined;
  }

  async function perform(kind: OperationKind): Promise<void> {
    switch (kind) {
      case 'provision':
      case 'start':
        desired = 'running';
        return provisioned ? bringUp() : provision();
      case 'stop':
        desired = 'stopped';
        if (provisioned) await engine.stopContainer(agent);
        return;
      case 'restart':
        desired = 'running';
        if (!provisioned) return provision();
        await engine.stopContainer(agent);
        return bringUp();
      case 'configure':
        if (!provisioned || desired === 'stopped') return;
        await engine.stopContainer(agent);
        return bringUp();
      case 'delete':
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
      staticSummary: `Provision agent ${agent.agentId}`,
    });
    provisioned = true;
  }

  /** Makes what is missing around the volume, and starts. The volume itself is never undone. */
  async function bringUp(): Promise<void> {
    await image.ensureImage(agent);
    await engine.createVolume(agent);
    await engine.createNetwork(agent);
    await engine.createContainer(agent);
    await engine.startContainer(agent);
    await readiness.awaitReady(agent);
    await record.recordRunning(agent);
  }

  async function watchContainer(): Promise<void> {
    const scope = new CancellationScope();
    // An operation or a wake-up ends the watch; the watch itself returns only what changed.
    const seen = await scope.run(() =>
      Promise.race([
        watch.watchHealth(agent, observed ?? null),
        condition(() => next !== undefined || wake).then(() => undefined),
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

  /** A container that ended without being told to is started again, for as long as it takes. */
  async function revive(seen: Observation): Promise<void> {
    showPhase('error', seen.reason);
    await record.recordObservation(agent, seen);
    try {
      await bringUp();
      observed = 'healthy';
      showPhase('running', null);
    } catch (error) {
      if (isCancellation(error)) throw error;
      const reason = failureReason(error);
      log.warn('container did not come back', { reason });
      await record.recordObservation(agent, { ...seen, reason });
      await condition(() => next !== undefined || wake, REVIVAL_PAUSE);
      observed = undefined;
    }
  }

  function settledPhase(status: 'succeeded' | 'failed' | 'cancelled'): string {
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
