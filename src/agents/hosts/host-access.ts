import type { AgentRef } from '../../types/agent-ref.js';
import type { LogLine, LogOptions } from '../../docker/containers/container-logs.js';
import type { ContainerStats, ContainerSummary } from '../../docker/containers/container-view.js';
import type { WorkspaceCall } from '../../workspace/workspace-call.js';

export interface Question {
  readonly message: string;
  readonly conversation: string;
}

export interface Instances {
  /** Of this user's agents alone. */
  readonly userId?: string | undefined;
  /** With what each that runs uses now. */
  readonly stats: boolean;
  /** Those of the first agents, by id. */
  readonly limit: number;
  /** Of agents with greater ids alone. */
  readonly after?: string | undefined;
}

/** A container of an agent, and what it uses: null unless that was asked for and it runs. */
export interface Instance extends ContainerSummary {
  readonly stats: ContainerStats | null;
}

/** The order in which instances are listed. */
export function byAgent(a: { agentId: string }, b: { agentId: string }): number {
  return a.agentId < b.agentId ? -1 : Number(a.agentId > b.agentId);
}

/** What is asked of the agents on one Docker host, wherever that is. */
export interface HostAccess {
  /**
   * Asks an agent that runs; its answer comes in pieces.
   *
   * @throws ConflictError when it does not run here
   * @throws BadGatewayError when its gateway fails
   */
  ask(agent: AgentRef, question: Question, signal: AbortSignal): AsyncGenerator<string>;

  /** The lines of its log. @throws ContainerMissingError, InvalidCursorError */
  logs(agentId: string, options?: LogOptions): AsyncGenerator<LogLine>;

  /** What its container uses now; null when it does not run. */
  stats(agentId: string): Promise<ContainerStats | null>;

  /** The containers of the host's agents, by the agents' ids. */
  instances(options: Instances): Promise<Instance[]>;

  /** Asks its workspace, whether it runs or not. The answer, or the refusal, is JSON that comes in pieces. */
  browse(agent: AgentRef, call: WorkspaceCall, signal: AbortSignal): AsyncGenerator<string>;
}
