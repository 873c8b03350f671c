import { randomUUID } from 'node:crypto';
import { getAgent } from '../agents/agents.js';
import type { Plan } from '../../types/plans.js';
import { listOwnKeys } from '../../ai/own-keys/own-key-store.js';
import type { Attempt, Router } from '../../ai/routing/route.js';
import { agentModelFault } from '../model/agent-model-sizes.js';
import { choiceOf, firstAttempt } from '../model/agent-model.js';
import type { TenantDatabase } from '../../platform/database/database.js';
import type { HostDirectory } from '../hosts/host-directory.js';
import { BadGatewayError, UnavailableError } from '../../lib/errors.js';
import type { Release } from '../../lib/fair-limiter.js';
import { QuotaLimiter } from '../../lib/quota-limiter.js';
import {
  chatTurn,
  findAnswer,
  replayedTurn,
  requireRunning,
  type TurnEvent,
  type TurnRef,
} from './turn.js';

/** Maximum number of turns in flight in total, and of one owner: a turn may take minutes. */
const MAX_TURNS = 400;
const MAX_TURNS_OF_OWNER = 20;

export interface Question {
  readonly agentId: string;
  readonly message: string;
  readonly conversation?: string | undefined;
  /** An id that stays the same when the request is repeated. */
  readonly requestId?: string;
  /** The plan of the agent's owner, which determines the model. */
  readonly plan?: Plan | undefined;
}

export class Chats {
  readonly #directory: Pick<HostDirectory, 'accessTo'>;
  readonly #router: Router;
  readonly #limiter = new QuotaLimiter({
    total: MAX_TURNS,
    perOwner: MAX_TURNS_OF_OWNER,
    message: 'Too many questions are in progress: retry when one has been answered',
  });

  constructor(directory: Pick<HostDirectory, 'accessTo'>, router: Router) {
    this.#directory = directory;
    this.#router = router;
  }

  /**
   * Yields an agent's answer in pieces. @throws NotFoundError; ConflictError if the agent is not running or
   * the request is in flight; TooManyRequestsError; UnavailableError without a host or a model, or with a model
   * that agents cannot use
   */
  async ask(
    tenant: TenantDatabase,
    { agentId, message, plan, requestId = randomUUID(), conversation = requestId }: Question,
    signal: AbortSignal,
  ): Promise<AsyncGenerator<TurnEvent>> {
    const agent = await getAgent(tenant, agentId);
    requireRunning(agent);
    const host = await this.#directory.accessTo(agent.host);
    const router = this.#router.opening(await listOwnKeys(tenant, agent.userId));
    router.requireModel(); // without one the agent could only fail
    const target = plan && firstAttempt(router, choiceOf(agent), plan);
    const fault = target?.entry && agentModelFault(target.entry);
    if (fault) throw new UnavailableError(fault);
    const asked = { message, conversation, requestId };
    const { id, userId } = agent;
    signal.throwIfAborted();
    const release = this.#limiter.take(userId);
    // Releases the turn also if its answer is never read.
    signal.addEventListener('abort', release, { once: true });
    const answer = host.ask(
      { agentId: id, userId, host: agent.host },
      { message, conversation },
      signal,
    );
    return untilEnd(chatTurn(tenant, agent, asked, namingModel(answer, target)), release);
  }

  /** Returns the events of an earlier request, without its agent; undefined if its answer is not stored. */
  async again(
    tenant: TenantDatabase,
    { conversation, requestId, ...question }: Omit<TurnRef, 'conversation'> & Question,
  ): Promise<readonly TurnEvent[] | undefined> {
    const turn = { ...question, requestId, conversation: conversation ?? requestId };
    const answer = await findAnswer(tenant, turn);
    return answer && replayedTurn(answer);
  }
}

/** Adds the agent's model to a failure of its gateway, which hides the reason. */
async function* namingModel(
  answer: AsyncIterable<string>,
  target: Attempt | undefined,
): AsyncGenerator<string> {
  try {
    yield* answer;
  } catch (error) {
    if (!(error instanceof BadGatewayError) || !target) throw error;
    const { model, provider } = target;
    throw new BadGatewayError(`${error.message} (model ${model} at the AI provider ${provider})`, {
      cause: error,
    });
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
