import { randomUUID } from 'node:crypto';
import { getAgent } from '../agents/agents.js';
import { requireProvider } from '../ai/route.js';
import type { TenantDatabase } from '../database/database.js';
import type { HostDirectory } from '../hosts/host-directory.js';
import type { Settings } from '../settings.js';
import { chatTurn, requireRunning, type TurnEvent } from './turn.js';

export interface Question {
  readonly agentId: string;
  readonly message: string;
  /** A new one when left out. */
  readonly conversation?: string | undefined;
}

/** Conversations of users with their agents. */
export class Chats {
  readonly #directory: Pick<HostDirectory, 'of'>;
  readonly #settings: Pick<Settings, 'ai'>;

  constructor(directory: Pick<HostDirectory, 'of'>, settings: Pick<Settings, 'ai'>) {
    this.#directory = directory;
    this.#settings = settings;
  }

  /**
   * Asks an agent; its answer comes in pieces.
   *
   * @throws NotFoundError when there is no such agent
   * @throws ConflictError when it does not run
   * @throws UnavailableError when its host cannot be reached, or no provider is configured
   */
  async ask(
    tenant: TenantDatabase,
    { agentId, message, conversation = randomUUID() }: Question,
    signal: AbortSignal,
  ): Promise<AsyncGenerator<TurnEvent>> {
    const { ai } = this.#settings;
    const agent = await getAgent(tenant, agentId);
    requireRunning(agent);
    const host = await this.#directory.of(agent.host);
    // Asked for its error alone: without a provider the agent could only fail.
    requireProvider(ai.providers, ai.provider);
    const asked = { message, conversation };
    const { id, userId } = agent;
    const answer = host.ask({ agentId: id, userId, host: agent.host }, asked, signal);
    return chatTurn(tenant, agent, asked, answer);
  }
}
