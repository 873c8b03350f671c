import { Op } from 'sequelize';
import type { TenantTransaction } from '../database/database.js';
import { updateAgent } from './agents.js';

/**
 * Puts an agent down as removed, and forgets its secrets, messages and archives; what else was under
 * way or asked for is cancelled.
 *
 * @param operationId the operation that removed it, whose own end is put down elsewhere.
 */
export async function buryAgent(
  db: TenantTransaction,
  agentId: string,
  operationId: string,
  at: Date,
): Promise<void> {
  for (const table of [db.AgentSecret, db.AgentCredential, db.AgentArchive, db.Message]) {
    await table.destroy({ where: { agentId } });
  }
  await db.Operation.update(
    { status: 'cancelled', finishedAt: at },
    { where: { agentId, finishedAt: null, id: { [Op.ne]: operationId } } },
  );
  await updateAgent(db, agentId, {
    desired: 'deleted',
    port: null,
    config: {},
    previousRelease: null,
    deletedAt: at,
  });
}
