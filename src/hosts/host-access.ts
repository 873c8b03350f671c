import type { AgentRef } from '../agents/agent-ref.js';
import type { LogLine, LogOptions } from '../containers/container-logs.js';
import type { ContainerStats, ContainerSummary } from '../containers/container-view.js';

export interface Question {
  readonly message: string;
  readonly conversation: string;
}

export interface Instances {
  /** Of this user's agents alone. */
  readonly userId?: string | undefined;
  /** With what each that runs uses now. */
  readonly stats: boolean;
}

/** A container of an agent, and what it uses: null unless that was asked for and it runs. */
export interface Instance extends ContainerSummary {
  readonly stats: ContainerStats | null;
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

  /** The containers of the host's agents. */
  instances(options: Instances): Promise<Instance[]>;
}
