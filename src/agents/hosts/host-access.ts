import type { AgentRef } from '../../types/agent-ref.js';
import type { LogLine, LogOptions } from '../../docker/containers/container-logs.js';
import type { ContainerStats, ContainerSummary } from '../../docker/containers/container-view.js';
import type { WorkspaceCall } from '../../workspace/workspace-call.js';

export interface Question {
  readonly message: string;
  readonly conversation: string;
}

export interface Instances {
  /** The only user whose agents are listed. */
  readonly userId?: string | undefined;
  /** True to include the current usage of each running container. */
  readonly stats: boolean;
  /** Most instances to list, in the order of agent ids. */
  readonly limit: number;
  /** The agent id after which the list starts. */
  readonly after?: string | undefined;
}

/** An agent's container and its usage. `stats` is null unless requested and the container runs. */
export interface Instance extends ContainerSummary {
  readonly stats: ContainerStats | null;
}

/** Orders instances by agent id. */
export function byAgent(a: { agentId: string }, b: { agentId: string }): number {
  return a.agentId < b.agentId ? -1 : Number(a.agentId > b.agentId);
}

/** The operations on agents of one Docker host, local or remote. */
export interface HostAccess {
  /**
   * Sends a message to a running agent and yields the answer in pieces.
   *
   * @throws ConflictError if the agent does not run here.
   * @throws BadGatewayError if the agent's gateway fails.
   */
  ask(agent: AgentRef, question: Question, signal: AbortSignal): AsyncGenerator<string>;

  /** Yields the lines of the container's log. @throws ContainerMissingError, InvalidCursorError */
  logs(agentId: string, options?: LogOptions): AsyncGenerator<LogLine>;

  /** Returns the container's current usage; null if the container does not run. */
  stats(agentId: string): Promise<ContainerStats | null>;

  /** Lists the agents' containers on the host, ordered by agent id. */
  instances(options: Instances): Promise<Instance[]>;

  /** Calls the agent's workspace, running or stopped. Yields the answer or the refusal as pieces of JSON. */
  browse(agent: AgentRef, call: WorkspaceCall, signal: AbortSignal): AsyncGenerator<string>;
}
