import { BadGatewayError } from '../../lib/errors.js';
import type { Database } from '../../platform/database/database.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import type { AgentRef } from '../../types/agent-ref.js';
import { findAgent } from '../agents/agents.js';
import { readGatewayToken } from '../credentials/agent-secrets.js';
import { askGateway, GatewayAwayError } from '../hosts/gateway.js';
import { LostAnswerError, trimConversation } from './messages.js';
import { chatTurn, messageId, type AnswerMessage } from './turn.js';

/** Milliseconds that an agent may take for an answer that no client waits for. */
const ANSWER_TIMEOUT_MS = 10 * 60_000;

/** Milliseconds for which an answer is kept in memory while the database is unavailable. */
const STORING_MS = 5 * 60_000;

/** Maximum number of newest messages that are kept in these conversations. */
const MAX_MESSAGES = 200;

/** A turn; the agent receives at most one question per id. */
export interface OwnerTurnRef {
  readonly id: string;
  readonly conversation: string;
}

export interface OwnerQuestion {
  /** Without an id, every call sends the question. */
  readonly id?: string;
  readonly conversation: string;
  readonly text: string;
  /** Milliseconds for the answer; ten minutes by default. */
  readonly timeoutMs?: number;
  /** True to remove a question that was not sent, so that the same id may be used again. */
  readonly retractsUnsent?: boolean;
}

export type TurnEnd =
  | { readonly kind: 'answered'; readonly answer: string }
  /** The question was not sent; `isPassing` if the agent should run, so that a later attempt may succeed. */
  | { readonly kind: 'skipped'; readonly reason: string; readonly isPassing?: true }
  /** The question was sent, and is never sent again under the same id. */
  | { readonly kind: 'failed'; readonly reason: string };

const LOST: TurnEnd = {
  kind: 'failed',
  reason: 'The answer was lost when the platform restarted. The message is not sent again',
};

const NOT_RUNNING = { kind: 'skipped', reason: 'The agent is not running' } as const;

const NOT_CONNECTED: TurnEnd = {
  kind: 'skipped',
  reason: "The agent's gateway accepts no connection",
  isPassing: true,
};

const NOT_REACHED: TurnEnd = {
  kind: 'skipped',
  reason: "The agent's host could not be reached in time",
};

/** Turns of agents on behalf of their owners: for heartbeats, tasks and the like. */
export class OwnerTurns {
  readonly #database: Database;
  readonly #secrets: SecretBox;

  constructor(database: Database, secrets: SecretBox) {
    this.#database = database;
    this.#secrets = secrets;
  }

  /**
   * Sends a question to an agent of this host and stores both messages. A turn whose id was used before ends
   * with its stored answer, or as failed.
   * @throws the signal's reason, and errors of the database; call again only with an id.
   */
  async ask(agent: AgentRef, question: OwnerQuestion, signal: AbortSignal): Promise<TurnEnd> {
    const { conversation, id, retractsUnsent, text, timeoutMs = ANSWER_TIMEOUT_MS } = question;
    const tenant = this.#database.asUser(agent.userId);
    if (id !== undefined) {
      const earlier = await this.#earlier(agent, { id, conversation });
      if (earlier) return earlier;
    }
    const row = await findAgent(tenant, agent.agentId);
    if (row?.desired !== 'running' || row.host !== agent.host) return NOT_RUNNING;
    if (row.status !== 'active' || row.port === null) return { ...NOT_RUNNING, isPassing: true };
    const gateway = {
      port: row.port,
      token: await readGatewayToken(tenant, this.#secrets, row.id),
    };
    const asked = {
      message: text,
      conversation,
      ...(id !== undefined && { requestId: id, isOnce: true }),
    };
    try {
      const answer = askGateway(gateway, asked, signal, timeoutMs);
      // A repeated call finds the answer only if it was stored.
      const keeping = id === undefined ? {} : { mostMs: STORING_MS, waitMs: STORING_MS };
      for await (const event of chatTurn(tenant, row, asked, answer, keeping)) {
        if (event.kind === 'done') return { kind: 'answered', answer: event.message.content };
      }
      throw new TypeError('The turn ended without a message');
    } catch (error) {
      if (error instanceof GatewayAwayError && retractsUnsent && id !== undefined) {
        await this.#retract(agent, { id, conversation });
        return NOT_CONNECTED;
      }
      if (error instanceof BadGatewayError) return { kind: 'failed', reason: error.message };
      if (error instanceof LostAnswerError) return LOST;
      throw error;
    } finally {
      await trimConversation(tenant, row.id, conversation, MAX_MESSAGES);
    }
  }

  /** Returns the end of a turn that no process works on any more, because its host or worker is lost. */
  async endOf(agent: AgentRef, turn: OwnerTurnRef): Promise<TurnEnd> {
    return (await this.#earlier(agent, turn)) ?? NOT_REACHED;
  }

  /** Returns the end of a turn whose question was sent before; undefined if none was. */
  async #earlier(agent: AgentRef, turn: OwnerTurnRef): Promise<TurnEnd | undefined> {
    const ids = messageIds(agent, turn);
    const stored = await this.#database.asUser(agent.userId).transaction(async (db) => ({
      question: await db.Message.findByPk(ids.question),
      answer: await db.Message.findByPk(ids.answer),
    }));
    if (stored.answer?.status === 'complete') return answered(stored.answer);
    return stored.question ? LOST : undefined;
  }

  /** Removes both messages of a turn whose question was not sent. */
  async #retract(agent: AgentRef, turn: OwnerTurnRef): Promise<void> {
    const { answer, question } = messageIds(agent, turn);
    await this.#database
      .asUser(agent.userId)
      .transaction((db) => db.Message.destroy({ where: { id: [question, answer] } }));
  }
}

function messageIds({ agentId }: AgentRef, { conversation, id }: OwnerTurnRef) {
  const ref = { agentId, conversation, message: '', requestId: id };
  return { question: messageId(ref, 'user'), answer: messageId(ref, 'assistant') };
}

const answered = ({ content }: Pick<AnswerMessage, 'content'>): TurnEnd => ({
  kind: 'answered',
  answer: content,
});
