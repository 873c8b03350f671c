import { randomUUID } from 'node:crypto';
import { readGatewayToken } from '../agents/agent-secrets.js';
import { getAgent } from '../agents/agents.js';
import { requireProvider } from '../ai/route.js';
import type { TenantDatabase } from '../database/database.js';
import type { SecretBox } from '../secrets/secret-box.js';
import type { Settings } from '../settings.js';
import { chatTurn, portOf, type TurnEvent } from './turn.js';

export interface Question {
  readonly agentId: string;
  readonly message: string;
  /** A new one when left out. */
  readonly conversation?: string | undefined;
}

/** Conversations of users with their agents. */
export class Chats {
  readonly #secrets: SecretBox;
  readonly #settings: Pick<Settings, 'agents' | 'ai'>;

  constructor(secrets: SecretBox, settings: Pick<Settings, 'agents' | 'ai'>) {
    this.#secrets = secrets;
    this.#settings = settings;
  }

  /**
   * Asks an agent; its answer comes in pieces.
   *
   * @throws NotFoundError when there is no such agent
   * @throws ConflictError when it does not run
   * @throws UnavailableError when it is on another host, or no provider is configured
   */
  async ask(
    tenant: TenantDatabase,
    { agentId, message, conversation = randomUUID() }: Question,
    signal: AbortSignal,
  ): Promise<AsyncGenerator<TurnEvent>> {
    const { agents, ai } = this.#settings;
    const agent = await getAgent(tenant, agentId);
    const port = portOf(agent, agents.host);
    // Asked for its error alone: without a provider the agent could only fail.
    requireProvider(ai.providers, ai.provider);
    const token = await readGatewayToken(tenant, this.#secrets, agent.id);
    return chatTurn(tenant, agent, { port, token }, { message, conversation }, signal);
  }
}
