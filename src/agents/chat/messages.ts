import { Op, literal } from 'sequelize';
import type { TenantDatabase } from '../../platform/database/database.js';
import type { MessageRow } from '../../platform/database/models.js';
import { ConflictError } from '../../lib/errors.js';

export interface MessagePage {
  readonly conversation?: string | undefined;
  readonly limit: number;
  readonly before?: string | undefined;
}

export async function listMessages(
  tenant: TenantDatabase,
  agentId: string,
  page: MessagePage,
): Promise<MessageRow[]> {
  const newestFirst = await tenant.transaction(async (db) => {
    const before =
      page.before && (await db.Message.findOne({ where: { id: page.before, agentId } }));
    return db.Message.findAll({
      where: {
        agentId,
        ...(page.conversation !== undefined && { conversation: page.conversation }),
        ...(before && { position: { [Op.lt]: literal(String(BigInt(before.position))) } }),
      },
      order: [['position', 'DESC']],
      limit: page.limit,
    });
  });
  return newestFirst.reverse();
}

export type NewMessage = Pick<
  MessageRow,
  'id' | 'agentId' | 'userId' | 'conversation' | 'role' | 'content' | 'status'
> &
  Partial<Pick<MessageRow, 'tookMs'>>;

/** Maximum number of stored bytes of an agent's messages, since its owner controls their volume. */
const MAX_BYTES = 64 * 1024 * 1024;
/** Bytes of a message besides its text: its row and index entries. */
const MESSAGE_BYTES = 512;
/** Bytes stored, on average, between two checks of the total. */
const CHECK_EVERY_BYTES = 4 * 1024 * 1024;

const TRIM = `
  DELETE FROM messages WHERE agent_id = $agentId AND position <= (
    SELECT position FROM (
      SELECT position, sum(octet_length(content) + ${MESSAGE_BYTES}) OVER (ORDER BY position DESC) AS bytes
        FROM messages WHERE agent_id = $agentId) AS newest
     WHERE bytes > $most ORDER BY position DESC LIMIT 1)`;

/** Stores one side of a turn of `turnBytes`; idempotent. Removes the oldest messages beyond the limit. */
export async function keepMessage(
  tenant: TenantDatabase,
  message: NewMessage,
  turnBytes: number,
): Promise<MessageRow> {
  return tenant.transaction(async (db) => {
    await db.Message.bulkCreate([message], { ignoreDuplicates: true });
    if (Math.random() * CHECK_EVERY_BYTES < turnBytes + 2 * MESSAGE_BYTES) {
      await db.query(TRIM, { agentId: message.agentId, most: MAX_BYTES });
    }
    return db.Message.getByPk(message.id);
  });
}

/** The answer to a question was lost, and the question must not be sent again. */
export class LostAnswerError extends Error {
  override readonly name = 'LostAnswerError';
}

interface Repetition {
  readonly answerId: string;
  /** Milliseconds after which an unanswered question counts as dead. */
  readonly longestMs: number;
  /** True for a question that is sent at most once, even if its answer was lost. */
  readonly isOnce: boolean;
}

/**
 * Stores a question before it is sent. Returns the answer if there is one: do not send the question again.
 * @throws ConflictError while the question is in flight; LostAnswerError.
 */
export async function beginTurn(
  tenant: TenantDatabase,
  question: NewMessage,
  { answerId, isOnce, longestMs }: Repetition,
): Promise<MessageRow | undefined> {
  return tenant.transaction(async (db) => {
    await db.lock(`question:${question.id}`);
    const asked = await db.Message.findByPk(question.id);
    if (asked) {
      const answered = await db.Message.findByPk(answerId);
      if (answered?.status === 'complete') return answered;
      if (isOnce) throw new LostAnswerError('The answer was lost');
      if (!answered && Date.now() - asked.createdAt.getTime() < longestMs) {
        throw new ConflictError(
          'The question is still being answered: retry later',
          'REQUEST_IN_FLIGHT',
        );
      }
      await db.Message.destroy({ where: { id: [question.id, answerId] } });
    }
    await db.Message.create(question);
    return undefined;
  });
}

export async function trimConversation(
  tenant: TenantDatabase,
  agentId: string,
  conversation: string,
  keep: number,
): Promise<void> {
  await tenant.transaction(async (db) => {
    const newestToGo = await db.Message.findOne({
      where: { agentId, conversation },
      order: [['position', 'DESC']],
      offset: keep,
    });
    if (!newestToGo) return;
    const position = { [Op.lte]: literal(String(BigInt(newestToGo.position))) };
    await db.Message.destroy({ where: { agentId, conversation, position } });
  });
}
