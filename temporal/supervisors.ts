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
import { temporalCall } from './temporal-call.js';

/**
 * How long a request waits for Temporal. The client's own retries end up to 5 s after
 * it, and the web API gives the backend 15 s in all.
 */
const CALL_TIMEOUT_MS = 8_000;

/**
 * A run's next step is made again and again when its code fails, or whoever makes it does not
 * come to its end. A queue that is long for a while is no reason to take it for stuck.
 */
interface StuckAfter {
  /** Of one step. */
  readonly attempts: number;
  /** Since the step was first to be made. */
  readonly ms: number;
}

const STUCK: StuckAfter = { attempts: 5, ms: 120_000 };

/**
 * The same of a part of a supervisor that moves: it would go on where it is once its code is mended, and
 * with its end what it was for has failed.
 */
const OWN_STUCK: StuckAfter = { attempts: 5, ms: 15 * 60_000 };

/** The runs that a supervisor starts as parts of its own, one of each at a time. */
const PARTS = [provisionAgentId, repairAgentId];

/** As gRPC numbers it. */
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
    const start = new WithStartWorkflowOperation<typeof superviseAgent>('superviseAgent', {
      ...startOptions(agent),
      workflowIdConflictPolicy: 'USE_EXISTING',
    });
    return this.#call(async () => {
      const update = await this.#client.workflow.startUpdateWithStart(
        supervision.operationUpdate(kind),
        {
          args: [{ operationId }],
          updateId: updateIdOf(operationId, requestedAt),
          startWorkflowOperation: start,
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
    });
  }

  async knows({ agentId }: AgentRef, operationId: string, requestedAt: Date): Promise<boolean> {
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
   * Makes sure that the agent has a supervisor that moves: one that is missing is started, one that is
   * stuck is ended first. The new one takes up what the database knows.
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
        await workflow.getHandle(workflowId, runId).terminate('It could not go on');
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
   * Ends parts of a supervisor that cannot go on: they never end by themselves, and their supervisor, or
   * the one after it, waits for that. Those that an earlier one has left and that move were told to end
   * with it.
   *
   * @returns whether there was any.
   * @throws UnavailableError
   */
  async endStuckParts(
    { agentId }: AgentRef,
    stuck = STUCK,
    ownStuck = OWN_STUCK,
  ): Promise<boolean> {
    return this.#call(async () => {
      let isAny = false;
      for (const idOf of PARTS) {
        const part = await this.#describeRunning(idOf(agentId));
        if (!part || !isStuck(part, stuck)) continue;
        // Asked after the part: whose it is has begun before it.
        const supervisor = await this.#describeRunning(superviseAgentId(agentId));
        const parent = part.raw.workflowExecutionInfo?.parentExecution?.runId ?? undefined;
        const isOwn = parent !== undefined && parent === supervisor?.runId;
        if (isOwn && !isStuck(part, ownStuck)) continue;
        const why = isOwn ? 'It could not go on' : 'It could not go on, and its supervisor is gone';
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

  async isAbout({ agentId }: AgentRef, operationId: string): Promise<boolean> {
    return this.#call(async () => {
      if (!(await this.#isRunning(agentId))) return false;
      const handle = this.#client.workflow.getHandle(superviseAgentId(agentId));
      return (await handle.query(supervision.openOperations)).includes(operationId);
    });
  }

  async #isRunning(agentId: string): Promise<boolean> {
    return (await this.#describeRunning(superviseAgentId(agentId))) !== undefined;
  }

  /** Lets the supervisor read anew what should be, and look at its container at once. */
  async checkNow(agent: Supervised): Promise<void> {
    await this.#signal(agent, supervision.checkNow, []);
  }

  /** Tells that the agent's container has ended. */
  async containerEnded(agent: Supervised, end: supervision.ContainerEnd): Promise<void> {
    await this.#signal(agent, supervision.containerEnded, [end]);
  }

  /** Tells that Docker is back, and that the agent's container does not run. */
  async dockerReturned(agent: Supervised, back: supervision.DockerReturn): Promise<void> {
    await this.#signal(agent, supervision.dockerReturned, [back]);
  }

  /** Ends what runs for an agent whose host is gone, where nothing could come to an end by itself. */
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

  /** Signals the supervisor; starts it where it is missing. */
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
    if (this.#uiUrl === undefined || runId === undefined) return undefined;
    const workflows = `${this.#uiUrl}/namespaces/${this.#client.options.namespace}/workflows`;
    return `${workflows}/${superviseAgentId(agentId)}/${runId}/history`;
  }

  async #call<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await temporalCall(this.#client, CALL_TIMEOUT_MS, work);
    } catch (error) {
      const refusal = refusalOf(error, supervision.OPERATION_CONFLICT);
      if (refusal) throw new ConflictError(refusal.message);
      throw error;
    }
  }
}

function isStuck({ raw }: WorkflowExecutionDescription, { attempts, ms }: StuckAfter): boolean {
  const { attempt, originalScheduledTime } = raw.pendingWorkflowTask ?? {};
  const since = optionalTsToMs(originalScheduledTime) ?? Date.now();
  return (attempt ?? 0) >= attempts && Date.now() - since >= ms;
}

/** The id of the same operation, because of which an Update was refused. */
export function operationUnderWay(error: unknown): string | undefined {
  const [id] = refusalOf(error, supervision.OPERATION_UNDER_WAY)?.details ?? [];
  return typeof id === 'string' ? id : undefined;
}

/** Why an Update was refused, if it was for a reason of this type. */
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
    // Its activities inherit it: one owner's work does not keep that of others waiting.
    priority: { fairnessKey: userId },
    typedSearchAttributes: [
      ...attributesOf({ agentId, userId }),
      { key: AGENT_PHASE, value: phase },
    ],
  };
}
