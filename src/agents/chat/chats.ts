import { randomUUID } from 'node:crypto';
import { getAgent } from '../agents/agents.js';
import { requireProvider } from '../../ai/routing/route.js';
import type { TenantDatabase } from '../../platform/database/database.js';
import type { HostDirectory } from '../hosts/host-directory.js';
import type { AiSettings } from '../../ai/routing/settings.js';
import { Shares, type Release } from '../../lib/shares.js';
import { chatTurn, requireRunning, type TurnEvent } from './turn.js';

/** Questions that agents are at: each may take minutes, and is read as fast as it is sent. */
const MAX_TURNS = 400;
const MAX_TURNS_OF_OWNER = 20;

export interface Question {
  readonly agentId: string;
  readonly message: string;
  /** A new one when left out. */
  readonly conversation?: string | undefined;
  /** The same where the same request comes again. */
  readonly requestId?: string;
}

/** Conversations of users with their agents. */
export class Chats {
  readonly #directory: Pick<HostDirectory, 'of'>;
  readonly #settings: { readonly ai: AiSettings };
  readonly #turns = new Shares({
    most: MAX_TURNS,
    perOwner: MAX_TURNS_OF_OWNER,
    refusal: 'Too many questions are being answered: come again when one of them is',
  });

  constructor(directory: Pick<HostDirectory, 'of'>, settings: { readonly ai: AiSettings }) {
    this.#directory = directory;
    this.#settings = settings;
  }

  /**
   * Asks an agent; its answer comes in pieces.
   *
   * @throws NotFoundError when there is no such agent
   * @throws ConflictError when it does not run, or is being asked by the same request
   * @throws TooManyRequestsError when too many of the owner's agents are being asked
   * @throws UnavailableError when its host cannot be reached, or no provider is configured
   */
  async ask(
    tenant: TenantDatabase,
    { agentId, message, requestId = randomUUID(), conversation = requestId }: Question,
    signal: AbortSignal,
  ): Promise<AsyncGenerator<TurnEvent>> {
    const { ai } = this.#settings;
    const agent = await getAgent(tenant, agentId);
    requireRunning(agent);
    const host = await this.#directory.of(agent.host);
    // Asked for its error alone: without a provider the agent could only fail.
    requireProvider(ai.providers, ai.provider);
    const asked = { message, conversation, requestId };
    const { id, userId } = agent;
    signal.throwIfAborted();
    const release = this.#turns.take(userId);
    // Also when its answer is never read.
    signal.addEventListener('abort', release, { once: true });
    const answer = host.ask(
      { agentId: id, userId, host: agent.host },
      { message, conversation },
      signal,
    );
    return untilEnd(chatTurn(tenant, agent, asked, answer), release);
  }
}

async function* untilEnd(
  turn: AsyncGenerator<TurnEvent>,
  release: Release,
): AsyncGenerator<TurnEvent> {
  try {
    yield* turn;
  } finally {
    release();
  }
}
