import { webStatus } from '../agents/web-status.js';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { refusesData } from '../../platform/database/constraints.js';
import type { TenantDatabase } from '../../platform/database/database.js';
import type { AgentRow, MessageRow } from '../../platform/database/models.js';
import { ConflictError } from '../../lib/errors.js';
import { deterministicUuid } from '../../lib/uuid-of.js';
import { sanitizeForJsonb } from '../../lib/well-formed.js';
import { ANSWER_TIMEOUT_MS } from '../hosts/gateway.js';
import { beginTurn, keepMessage, type NewMessage } from './messages.js';

export type TurnEvent =
  | { readonly kind: 'delta'; readonly content: string }
  | {
      readonly kind: 'done';
      readonly message: AnswerMessage;
      /** False if the answer is to be stored later. */
      readonly isStored: boolean;
    };

export type AnswerMessage = Pick<MessageRow, 'id' | 'conversation' | 'content' | 'createdAt'>;

export interface TurnQuestion {
  readonly message: string;
  readonly conversation: string;
  /** Stays the same when the request is repeated: its turn then happens once. */
  readonly requestId?: string;
  /** True if the question is never sent again under its `requestId`, even with another text. */
  readonly isOnce?: boolean;
}

/** A turn by the request that caused it. */
export interface TurnRef extends Required<Omit<TurnQuestion, 'isOnce'>> {
  readonly agentId: string;
}

export const messageId = (
  { agentId, conversation, message, requestId }: TurnRef,
  role: 'user' | 'assistant',
): string => deterministicUuid([requestId, agentId, conversation, message, role]);

/** Returns the stored answer of a turn; undefined if it is missing or incomplete. */
export async function findAnswer(
  tenant: TenantDatabase,
  turn: TurnRef,
): Promise<AnswerMessage | undefined> {
  const id = messageId(turn, 'assistant');
  const found = await tenant.transaction((db) => db.Message.findByPk(id));
  return found?.status === 'complete' ? found : undefined;
}

/** Returns the events of a stored answer, as of its turn. */
export const replayedTurn = (message: AnswerMessage): readonly TurnEvent[] => [
  { kind: 'delta', content: message.content },
  { kind: 'done', message, isStored: true },
];

interface Keeping {
  readonly retryMs: number;
  readonly mostMs: number;
  /** Milliseconds that the answer's reader waits for storage. */
  readonly waitMs: number;
}

const KEEPING: Keeping = { retryMs: 500, mostMs: 5 * 60_000, waitMs: 10_000 };

/**
 * Yields an answer in pieces, then the whole, and stores both sides, also an incomplete answer. Storing is
 * retried for minutes without the database, but the reader still gets the answer.
 * @throws the answer's error; ConflictError while the same request is in flight; LostAnswerError.
 */
export async function* chatTurn(
  tenant: TenantDatabase,
  agent: Pick<AgentRow, 'id' | 'userId'>,
  question: TurnQuestion,
  answer: AsyncIterable<string>,
  keeping: Partial<Keeping> = {},
): AsyncGenerator<TurnEvent> {
  const { conversation, isOnce = false, message, requestId = randomUUID() } = question;
  const bounds = { ...KEEPING, ...keeping };
  const side = { agentId: agent.id, userId: agent.userId, conversation };
  const ref = { agentId: agent.id, conversation, message: isOnce ? '' : message, requestId };
  const answerId = messageId(ref, 'assistant');
  const asked = {
    id: messageId(ref, 'user'),
    role: 'user',
    content: message,
    status: 'complete',
  } as const;
  const longestMs = ANSWER_TIMEOUT_MS + bounds.mostMs;
  const before = await beginTurn(tenant, { ...side, ...asked }, { answerId, isOnce, longestMs });
  if (before) {
    yield* replayedTurn(before);
    return;
  }
  const began = performance.now();
  let content = '';
  let status: 'complete' | 'failed' = 'failed';
  let stored: MessageRow | undefined;
  try {
    for await (const piece of answer) {
      content += piece;
      yield { kind: 'delta', content: piece };
    }
    status = 'complete';
  } finally {
    // Also reached if the reader leaves early, which ends this generator here.
    const storable = sanitizeForJsonb(content);
    const tookMs = Math.round(performance.now() - began);
    const answered = { role: 'assistant', content: storable, status, tookMs } as const;
    const said = { ...side, id: answerId, ...answered };
    const turnBytes = Buffer.byteLength(message) + Buffer.byteLength(content);
    const kept = storeWithRetry(tenant, { message: said, turnBytes }, bounds);
    stored = await withinWait(kept, bounds.waitMs);
  }
  const unstored = { id: answerId, conversation, content, createdAt: new Date() };
  yield { kind: 'done', message: stored ?? unstored, isStored: stored !== undefined };
}

async function storeWithRetry(
  tenant: TenantDatabase,
  { message, turnBytes }: { readonly message: NewMessage; readonly turnBytes: number },
  { mostMs, retryMs }: Keeping,
): Promise<MessageRow> {
  const end = performance.now() + mostMs;
  for (;;) {
    try {
      return await keepMessage(tenant, message, turnBytes);
    } catch (error) {
      if (refusesData(error) || performance.now() > end) throw error;
      // The delay does not keep the process alive.
      await delay(retryMs, undefined, { ref: false });
    }
  }
}

/** Waits for a limited time; undefined on timeout, and the work continues. */
async function withinWait<T>(work: Promise<T>, ms: number): Promise<T | undefined> {
  const enough = new AbortController();
  try {
    return await Promise.race([work, delay(ms, undefined, { signal: enough.signal })]);
  } finally {
    enough.abort();
  }
}

/** Requires an agent that runs. @throws ConflictError with its status in the web API's words */
export function requireRunning({ port, status }: Pick<AgentRow, 'port' | 'status'>): void {
  if (status !== 'active' || port === null) {
    throw new ConflictError('The agent is not running', 'AGENT_NOT_RUNNING', {
      status: webStatus(status),
    });
  }
}
