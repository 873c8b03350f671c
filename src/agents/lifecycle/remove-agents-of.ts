import { randomUUID } from 'node:crypto';
import { Op } from 'sequelize';
import type { Requester } from '../../platform/audit/requester.js';
import type { TenantTransaction } from '../../platform/database/database.js';
import { isHostRemoved } from '../hosts/hosts.js';
import { removeLostAgent } from '../operations/lost-agent.js';
import { storeOperation } from '../operations/operations.js';

/**
 * Requests the removal of all agents of a user in the caller's transaction: the user no longer sees the
 * agents, and a worker passes the requests to their supervisors.
 */
export async function removeAgentsOf(
  db: TenantTransaction,
  userId: string,
  by: Pick<Requester, 'actor' | 'requestId'>,
): Promise<void> {
  const where = { userId, desired: { [Op.ne]: 'deleted' as const } };
  for (const agent of await db.Agent.findAll({ where, order: [['id', 'ASC']] })) {
    const id = randomUUID();
    if (await isHostRemoved(db, agent.host)) await removeLostAgent(db, by, agent, id);
    else await storeOperation(db, agent, { id, kind: 'delete', by });
  }
}
