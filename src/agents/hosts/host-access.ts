import type { Duplex } from 'node:stream';
import type { AgentRef } from '../../types/agent-ref.js';
import type { LogLine, LogOptions } from '../../docker/containers/container-logs.js';
import type { ContainerStats, ContainerSummary } from '../../docker/containers/container-view.js';
import type { WorkspaceCall } from '../../workspace/workspace-call.js';

export interface Question {
  readonly message: string;
  readonly conversation: string;
}

export interface Instances {
  readonly userId?: string | undefined;
  readonly stats: boolean;
  /** Maximum number of instances to list, in the order of agent ids. */
  readonly limit: number;
  readonly after?: string | undefined;
}

/** `stats` is null unless requested and the container runs. */
export interface Instance extends ContainerSummary {
  readonly stats: ContainerStats | null;
}

export function byAgent(a: { agentId: string }, b: { agentId: string }): number {
  return a.agentId < b.agentId ? -1 : Number(a.agentId > b.agentId);
}

/** The operations on agents of one Docker host, local or remote. */
export interface HostAccess {
  /** Yields an agent's answer. @throws ConflictError if the agent does not run here; BadGatewayError */
  ask(agent: AgentRef, question: Question, signal: AbortSignal): AsyncGenerator<string>;

  /** Yields the lines of the container's log. @throws ContainerMissingError, InvalidCursorError */
  logs(agentId: string, options?: LogOptions): AsyncGenerator<LogLine>;

  stats(agentId: string): Promise<ContainerStats | null>;

  /** Returns the failing parts of the agent's runtime according to itself; null if it does not report them. */
  failures(agent: AgentRef, signal: AbortSignal): Promise<readonly string[] | null>;

  /** Opens a connection to the agent's gateway. @throws ConflictError if the agent does not run here */
  connect(agent: AgentRef): Promise<Duplex>;

  instances(options: Instances): Promise<Instance[]>;

  /** Calls the agent's workspace, running or stopped. Yields the answer or the refusal as JSON. */
  browse(agent: AgentRef, call: WorkspaceCall, signal: AbortSignal): AsyncGenerator<string>;
}
