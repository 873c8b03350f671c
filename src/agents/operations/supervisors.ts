import type { AgentRow } from '../../platform/database/models.js';
import type { AgentRef } from '../../types/agent-ref.js';
import type { RequestedKind } from '../../types/operation-kinds.js';

export interface Supervised extends AgentRef {
  readonly name: string;
  readonly desired: 'running' | 'stopped';
  readonly provisioned: boolean;
}

export interface RequestedOperation {
  /** Id of the operation in flight, if the same one was already requested. */
  readonly operationId: string;
  /** Address of the run in the Temporal UI, if available. */
  readonly run: string | undefined;
}

/** Access to the agents' supervisors: one long-running workflow per agent. */
export interface AgentSupervisors {
  /** Provisions a new agent without waiting for a worker. Idempotent by id. @throws UnavailableError */
  provision(agent: Supervised, operationId: string): Promise<RequestedOperation>;

  /**
   * Requests an operation, starting a supervisor if missing. Idempotent by id and the time of storing: the
   * supervisor has skipped a withdrawn request. @throws ConflictError while another operation runs;
   * UnavailableError when the supervisor, which may have the request, cannot be reached
   */
  request(
    agent: Supervised,
    kind: RequestedKind,
    operationId: string,
    requestedAt?: Date,
  ): Promise<RequestedOperation>;

  /** Reports whether the supervisor has this request, or will receive it. @throws UnavailableError */
  hasRequest(agent: AgentRef, operationId: string, requestedAt: Date): Promise<boolean>;

  /**
   * Reports whether a begun operation is in flight; false once the supervisor's run was closed.
   * @throws UnavailableError also when no worker responds for the supervisor
   */
  isInFlight(agent: AgentRef, operationId: string): Promise<boolean>;

  /** Checks that supervisors can be reached. @throws UnavailableError */
  ping(): Promise<void>;
}

export function supervisedOf(agent: AgentRow): Supervised {
  return {
    agentId: agent.id,
    userId: agent.userId,
    host: agent.host,
    name: agent.name,
    desired: agent.desired === 'stopped' ? 'stopped' : 'running',
    provisioned: agent.startedAt !== null,
  };
}
