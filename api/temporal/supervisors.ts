import {
  WithStartWorkflowOperation,
  WorkflowUpdateFailedError,
  isGrpcServiceError,
  type Client,
  type WorkflowStartOptions,
} from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type { AgentRef } from '../../src/agents/agent-ref.js';
import type { OperationKind } from '../../src/agents/operation-rules.js';
import { ConflictError, UnavailableError } from '../../src/errors.js';
import { PLATFORM_TASK_QUEUE, superviseAgentId } from '../../workflows/ids.js';
import { AGENT_ID, AGENT_OWNER, AGENT_PHASE } from '../../workflows/search-attributes.js';
import * as supervision from '../../workflows/supervise-agent-messages.js';

/**
 * How long a request waits for the workflow engine. The client's own retries end up to 5 s after
 * it, and the web API gives the backend 15 s in all.
 */
const CALL_TIMEOUT_MS = 8_000;

const UNREACHABLE = 'The workflow engine cannot be reached; try again';

/** What the supervisor of an agent has to know when it is not there yet. */
export interface Supervised extends AgentRef {
  readonly name: string;
  readonly desired: 'running' | 'stopped';
  readonly provisioned: boolean;
}

export interface RequestedOperation {
  /** That of the operation under way, when the same one was already asked for. */
  readonly operationId: string;
  /** Address of the run in the Temporal UI, where one is known. */
  readonly run: string | undefined;
}

/** The API's way to the agents' supervisors. */
export class Supervisors {
  constructor(
    private readonly client: Client,
    private readonly uiUrl: string | undefined,
  ) {}

  /**
   * Starts the supervisor of a new agent with its provisioning. Again for the same agent it does
   * nothing.
   *
   * @throws UnavailableError
   */
  async provision(agent: Supervised, operationId: string): Promise<RequestedOperation> {
    return this.call(async () => {
      const handle = await this.client.workflow.start<typeof supervision.superviseAgent>(
        'superviseAgent',
        {
          ...startOptions(agent, { id: operationId, kind: 'provision' }),
          workflowIdConflictPolicy: 'USE_EXISTING',
        },
      );
      return { operationId, run: this.runUrl(agent.agentId, handle.firstExecutionRunId) };
    });
  }

  /**
   * Asks for an operation; starts a supervisor where none is. Again with the same id it is the same
   * operation.
   *
   * @throws ConflictError while another operation runs
   * @throws UnavailableError
   */
  async request(
    agent: Supervised,
    kind: Exclude<OperationKind, 'provision'>,
    operationId: string,
  ): Promise<RequestedOperation> {
    const start = new WithStartWorkflowOperation<typeof supervision.superviseAgent>(
      'superviseAgent',
      {
        ...startOptions(agent),
        workflowIdConflictPolicy: 'USE_EXISTING',
      },
    );
    return this.call(async () => {
      const admitted = await this.client.workflow.executeUpdateWithStart(
        supervision.OPERATION_UPDATES[kind],
        {
          args: [{ operationId }],
          updateId: operationId,
          startWorkflowOperation: start,
        },
      );
      return { ...admitted, run: this.runUrl(agent.agentId) };
    });
  }

  /** Lets the supervisor look at its container at once. Starts it where it is missing. */
  async checkNow(agent: Supervised): Promise<void> {
    await this.call(() =>
      this.client.workflow.signalWithStart<typeof supervision.superviseAgent>('superviseAgent', {
        ...startOptions(agent),
        signal: supervision.checkNow,
      }),
    );
  }

  private runUrl(agentId: string, runId?: string): string | undefined {
    if (this.uiUrl === undefined) return undefined;
    const workflow = `${this.uiUrl}/namespaces/${this.client.options.namespace}/workflows/${superviseAgentId(agentId)}`;
    return runId === undefined ? workflow : `${workflow}/${runId}/history`;
  }

  private async call<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await bounded(this.client.withDeadline(Date.now() + CALL_TIMEOUT_MS, work));
    } catch (error) {
      if (
        error instanceof WorkflowUpdateFailedError &&
        error.cause instanceof ApplicationFailure &&
        error.cause.type === supervision.OPERATION_CONFLICT
      ) {
        throw new ConflictError(error.cause.message);
      }
      if (isGrpcServiceError(error) || isGrpcServiceError(cause(error))) {
        throw new UnavailableError(UNREACHABLE, { cause: error });
      }
      throw error;
    }
  }
}

function startOptions(
  agent: Supervised,
  operation?: { id: string; kind: OperationKind },
): WorkflowStartOptions<typeof supervision.superviseAgent> {
  const { agentId, userId, host, name, desired, provisioned } = agent;
  return {
    workflowId: superviseAgentId(agentId),
    taskQueue: PLATFORM_TASK_QUEUE,
    args: [{ agentId, userId, host, desired, provisioned, ...(operation && { operation }) }],
    staticSummary: `Agent ${name}`,
    typedSearchAttributes: [
      { key: AGENT_ID, value: agentId },
      { key: AGENT_OWNER, value: userId },
      { key: AGENT_PHASE, value: operation ? 'provisioning' : desired },
    ],
  };
}

/** The SDK's pauses between its own retries go on past its deadline by seconds. */
async function bounded<T>(call: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new UnavailableError(UNREACHABLE)), CALL_TIMEOUT_MS);
  });
  try {
    return await Promise.race([call, tooLate]);
  } finally {
    clearTimeout(timer);
  }
}

function cause(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined;
}
