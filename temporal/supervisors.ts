import {
  WithStartWorkflowOperation,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  isGrpcServiceError,
  type Client,
  type WorkflowExecutionDescription,
  type WorkflowStartOptions,
} from '@temporalio/client';
import { ApplicationFailure, type SignalDefinition } from '@temporalio/common';
import { optionalTsToMs } from '@temporalio/common/lib/time.js';
import type { AgentRef } from '../src/types/agent-ref.js';
import type { RequestedKind } from '../src/types/operation-kinds.js';
import type { SupervisorFound } from '../src/agents/operations/supervision.js';
import type {
  AgentSupervisors,
  RequestedOperation,
  Supervised,
} from '../src/agents/operations/supervisors.js';
import { ConflictError } from '../src/lib/errors.js';
import {
  PLATFORM_TASK_QUEUE,
  provisionAgentId,
  repairAgentId,
  superviseAgentId,
} from '../workflows/ids.js';
import { AGENT_PHASE, attributesOf } from '../workflows/search-attributes.js';
import type { superviseAgent } from '../workflows/supervise-agent.js';
import * as supervision from '../workflows/supervise-agent-messages.js';
import { runUrl } from './run-url.js';
import { temporalCall } from './temporal-call.js';

/**
 * Milliseconds that a request waits for Temporal. The client's own retries end up to 5 s later, and the
 * web API gives the backend 15 s in total.
 */
const CALL_TIMEOUT_MS = 8_000;

/**
 * Limits after which a run counts as stuck: its step is retried while its code fails or its worker does
 * not finish. A queue that is long for a while must not count.
 */
interface StuckAfter {
  /** Attempts at one step. */
  readonly attempts: number;
  /** Milliseconds since the step was first scheduled. */
  readonly ms: number;
}

const STUCK: StuckAfter = { attempts: 5, ms: 120_000 };

/**
 * Limits for a part of a supervisor that is not stuck: the part would continue once its code is fixed,
 * and terminating it makes its operation fail.
 */
const OWN_STUCK: StuckAfter = { attempts: 5, ms: 15 * 60_000 };

/** Child workflows of a supervisor, at most one of each kind at a time. */
const PARTS = [provisionAgentId, repairAgentId];

/** gRPC's status code. */
const NOT_FOUND = 5;

/** The agents' supervisors, as workflows. */
export class Supervisors implements AgentSupervisors {
  readonly #client: Client;
  readonly #uiUrl: string | undefined;

  constructor(client: Client, uiUrl: string | undefined) {
    this.#client = client;
    this.#uiUrl = uiUrl;
  }

  async provision(agent: Supervised, operationId: string): Promise<RequestedOperation> {
    return this.#call(async () => {
      const { signaledRunId } = await this.#signalWithStart(
        startOptions(agent, 'provisioning'),
        supervision.provisionRequested,
        [{ operationId }],
      );
      return { operationId, run: this.#runUrl(agent.agentId, signaledRunId) };
    });
  }

  async request(
    agent: Supervised,
    kind: RequestedKind,
    operationId: string,
    requestedAt?: Date,
  ): Promise<RequestedOperation> {
    return this.#call(async () => {
      for (let attempt = 1; ; attempt++) {
        try {
          return await this.#requestOnce(agent, kind, updateIdOf(operationId, requestedAt), {
            operationId,
          });
        } catch (error) {
          const isLost = refusalOf(error, UNPROCESSED) !== undefined;
          if (!isLost || attempt === MAX_ATTEMPTS) throw error;
        }
      }
    });
  }

  async #requestOnce(
    agent: Supervised,
    kind: RequestedKind,
    updateId: string,
    message: { readonly operationId: string },
  ): Promise<RequestedOperation> {
    const update = await this.#client.workflow.startUpdateWithStart(
      supervision.operationUpdate(kind),
      {
        args: [message],
        updateId,
        startWorkflowOperation: new WithStartWorkflowOperation<typeof superviseAgent>(
          'superviseAgent',
          { ...startOptions(agent), workflowIdConflictPolicy: 'USE_EXISTING' },
        ),
        waitForStage: 'ACCEPTED',
      },
    );
    const run = this.#runUrl(agent.agentId, update.workflowRunId);
    try {
      return { ...(await update.result()), run };
    } catch (error) {
      const underWay = operationUnderWay(error);
      if (underWay === undefined) throw error;
      return { operationId: underWay, run };
    }
  }

  async hasRequest(
    { agentId }: AgentRef,
    operationId: string,
    requestedAt: Date,
  ): Promise<boolean> {
    return this.#call(async () => {
      if (!(await this.#isRunning(agentId))) return false;
      try {
        await this.#client.workflowService.pollWorkflowExecutionUpdate({
          namespace: this.#client.options.namespace,
          updateRef: {
            workflowExecution: { workflowId: superviseAgentId(agentId) },
            updateId: updateIdOf(operationId, requestedAt),
          },
        });
        return true;
      } catch (error) {
        if (isGrpcServiceError(error) && Number(error.code) === NOT_FOUND) return false;
        throw error;
      }
    });
  }

  /**
   * Ensures that the agent has a supervisor that is not stuck: starts a missing one, and terminates a
   * stuck one first. The new supervisor resumes from the database.
   *
   * @throws UnavailableError
   */
  async ensure(agent: Supervised, stuck: StuckAfter = STUCK): Promise<SupervisorFound> {
    return this.#call(async () => {
      const { found, runId } = await this.#find(agent, stuck);
      if (found === 'moves') return found;
      const { workflow } = this.#client;
      const workflowId = superviseAgentId(agent.agentId);
      if (found === 'stuck') {
        await workflow.getHandle(workflowId, runId).terminate('Stuck');
      }
      await workflow.start<typeof superviseAgent>('superviseAgent', {
        ...startOptions(agent),
        workflowIdConflictPolicy: 'USE_EXISTING',
      });
      return found;
    });
  }

  async #find(
    { agentId }: AgentRef,
    stuck: StuckAfter,
  ): Promise<{ readonly found: SupervisorFound; readonly runId?: string }> {
    const described = await this.#describeRunning(superviseAgentId(agentId));
    if (!described) return { found: 'missing' };
    return { found: isStuck(described, stuck) ? 'stuck' : 'moves', runId: described.runId };
  }

  /**
   * Terminates stuck parts of a supervisor: they never end by themselves, and block their supervisor or
   * its successor. Parts that an earlier supervisor left and that are not stuck were already requested to
   * end.
   *
   * @returns true if any part was terminated.
   * @throws UnavailableError
   */
  async endStuckChildren(
    { agentId }: AgentRef,
    stuck = STUCK,
    ownStuck = OWN_STUCK,
  ): Promise<boolean> {
    return this.#call(async () => {
      let isAny = false;
      for (const idOf of PARTS) {
        const part = await this.#describeRunning(idOf(agentId));
        if (!part || !isStuck(part, stuck)) continue;
        // Read after the part, whose supervisor must have started before it.
        const supervisor = await this.#describeRunning(superviseAgentId(agentId));
        const parent = part.raw.workflowExecutionInfo?.parentExecution?.runId ?? undefined;
        const isOwn = parent !== undefined && parent === supervisor?.runId;
        if (isOwn && !isStuck(part, ownStuck)) continue;
        const why = isOwn ? 'Stuck' : 'Stuck, and its supervisor no longer exists';
        await this.#client.workflow.getHandle(part.workflowId, part.runId).terminate(why);
        isAny = true;
      }
      return isAny;
    });
  }

  async #describeRunning(workflowId: string): Promise<WorkflowExecutionDescription | undefined> {
    try {
      const described = await this.#client.workflow.getHandle(workflowId).describe();
      return described.status.name === 'RUNNING' ? described : undefined;
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return undefined;
      throw error;
    }
  }

  async isInFlight({ agentId }: AgentRef, operationId: string): Promise<boolean> {
    return this.#call(async () => {
      if (!(await this.#isRunning(agentId))) return false;
      const handle = this.#client.workflow.getHandle(superviseAgentId(agentId));
      return (await handle.query(supervision.openOperations)).includes(operationId);
    });
  }

  async #isRunning(agentId: string): Promise<boolean> {
    return (await this.#describeRunning(superviseAgentId(agentId))) !== undefined;
  }

  /** Makes the supervisor read the desired state again, and probe its container at once. */
  async checkNow(agent: Supervised): Promise<void> {
    await this.#signal(agent, supervision.checkNow, []);
  }

  /** Notifies the supervisor that the agent's container has ended. */
  async containerEnded(agent: Supervised, end: supervision.ContainerEnd): Promise<void> {
    await this.#signal(agent, supervision.containerEnded, [end]);
  }

  /** Notifies the supervisor that Docker is available again, and that the agent's container does not run. */
  async dockerReturned(agent: Supervised, back: supervision.DockerReturn): Promise<void> {
    await this.#signal(agent, supervision.dockerReturned, [back]);
  }

  /** Terminates all runs for an agent whose host no longer exists: they could not end by themselves. */
  async abandon(agentId: string): Promise<void> {
    for (const idOf of [superviseAgentId, ...PARTS]) {
      await this.#call(async () => {
        try {
          await this.#client.workflow.getHandle(idOf(agentId)).terminate('its host was removed');
        } catch (error) {
          if (!(error instanceof WorkflowNotFoundError)) throw error;
        }
      });
    }
  }

  async ping(): Promise<void> {
    await this.#call(() => this.#client.workflowService.getSystemInfo({}));
  }

  /** Signals the supervisor, and starts a missing one. */
  async #signal<Args extends unknown[]>(
    agent: Supervised,
    signal: SignalDefinition<Args>,
    signalArgs: Args,
  ): Promise<void> {
    await this.#call(() => this.#signalWithStart(startOptions(agent), signal, signalArgs));
  }

  #signalWithStart<Args extends unknown[]>(
    options: WorkflowStartOptions<typeof superviseAgent>,
    { name: signal }: SignalDefinition<Args>,
    signalArgs: Args,
  ) {
    return this.#client.workflow.signalWithStart<typeof superviseAgent, unknown[]>(
      'superviseAgent',
      { ...options, signal, signalArgs },
    );
  }

  #runUrl(agentId: string, runId: string | undefined): string | undefined {
    if (runId === undefined) return undefined;
    const run = { workflowId: superviseAgentId(agentId), runId };
    return runUrl(this.#uiUrl, this.#client.options.namespace, run);
  }

  async #call<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await temporalCall(this.#client, CALL_TIMEOUT_MS, work);
    } catch (error) {
      const refusal = refusalOf(error, supervision.OPERATION_CONFLICT);
      if (refusal) throw new ConflictError(refusal.message, 'OPERATION_IN_FLIGHT');
      throw error;
    }
  }
}

/** Type of the server's rejection of an Update that its worker left unanswered; nothing was begun. */
const UNPROCESSED = 'UnprocessedUpdate';

/** Maximum number of attempts to request an operation whose Updates are left unanswered, within one time limit. */
const MAX_ATTEMPTS = 3;

function isStuck({ raw }: WorkflowExecutionDescription, { attempts, ms }: StuckAfter): boolean {
  const { attempt, originalScheduledTime } = raw.pendingWorkflowTask ?? {};
  const since = optionalTsToMs(originalScheduledTime) ?? Date.now();
  return (attempt ?? 0) >= attempts && Date.now() - since >= ms;
}

/** Returns the id of the equal operation in flight because of which an Update was rejected. */
export function operationUnderWay(error: unknown): string | undefined {
  const [id] = refusalOf(error, supervision.OPERATION_UNDER_WAY)?.details ?? [];
  return typeof id === 'string' ? id : undefined;
}

/** Returns the failure with which an Update was rejected, if it is of this type. */
function refusalOf(error: unknown, type: string): ApplicationFailure | undefined {
  if (!(error instanceof WorkflowUpdateFailedError)) return undefined;
  const { cause } = error;
  return cause instanceof ApplicationFailure && cause.type === type ? cause : undefined;
}

function updateIdOf(operationId: string, requestedAt: Date | undefined): string {
  return requestedAt === undefined ? operationId : `${operationId}-${requestedAt.getTime()}`;
}

function startOptions(
  agent: Supervised,
  phase: string = agent.desired,
): WorkflowStartOptions<typeof superviseAgent> {
  const { agentId, userId, host, name, desired, provisioned } = agent;
  return {
    workflowId: superviseAgentId(agentId),
    taskQueue: PLATFORM_TASK_QUEUE,
    args: [{ agentId, userId, host, desired, provisioned }],
    staticSummary: `Agent ${name}`,
    // Inherited by the run's activities: the work of one owner does not delay that of others.
    priority: { fairnessKey: userId },
    typedSearchAttributes: [
      ...attributesOf({ agentId, userId }),
      { key: AGENT_PHASE, value: phase },
    ],
  };
}
