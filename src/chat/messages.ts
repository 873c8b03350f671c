import { randomUUID } from 'node:crypto';
import { Op, literal } from 'sequelize';
import type { TenantDatabase } from '../database/database.js';
import type { MessageRow } from '../database/models.js';

export interface MessagePage {
  readonly conversation?: string | undefined;
  readonly limit: number;
  /** Id of the message before which the page ends. */
  readonly before?: string | undefined;
}

/** The newest messages before a point, oldest first. */
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

/** One side of a turn. */
export type NewMessage = Pick<
  MessageRow,
  'agentId' | 'userId' | 'conversation' | 'role' | 'content' | 'status'
>;

/** Keeps one side of a turn. */
export async function storeMessage(
  tenant: TenantDatabase,
  message: NewMessage,
): Promise<MessageRow> {
  return tenant.transaction((db) => db.Message.create({ id: randomUUID(), ...message }));
}

/** Forgets all but the newest messages of a conversation. */
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
