import type { AgentRow } from '../../platform/database/models.js';
import type { AgentRef } from '../../types/agent-ref.js';
import type { RequestedKind } from '../../types/operation-kinds.js';

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

/** The way to the agents' supervisors: one long-lived process for each agent. */
export interface AgentSupervisors {
  /**
   * Tells the supervisor of a new agent, which is started where it is missing, to provision it. Waits
   * for no worker. Again with the same id it is the same operation.
   *
   * @throws UnavailableError
   */
  provision(agent: Supervised, operationId: string): Promise<RequestedOperation>;

  /**
   * Asks for an operation; starts a supervisor where none is. Again with the same id it is the same
   * operation.
   *
   * @param requestedAt when it was put down: one that was taken back, and is asked for again, is
   *   another request to the supervisor, which has passed over the first.
   * @throws ConflictError while another operation runs
   * @throws UnavailableError when it cannot be reached; it may have heard all the same
   */
  request(
    agent: Supervised,
    kind: RequestedKind,
    operationId: string,
    requestedAt?: Date,
  ): Promise<RequestedOperation>;

  /**
   * Whether the supervisor has this request for an operation, or will get it.
   *
   * @throws UnavailableError
   */
  knows(agent: AgentRef, operationId: string, requestedAt: Date): Promise<boolean>;

  /**
   * Whether an operation that has begun is under way: it is not when the supervisor's run was closed
   * meanwhile.
   *
   * @throws UnavailableError also when no worker answers for the supervisor
   */
  isAbout(agent: AgentRef, operationId: string): Promise<boolean>;
}

/** What the supervisor of this agent has to know when it is started anew. */
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
