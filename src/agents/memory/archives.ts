import type { TenantDatabase, TenantTransaction } from '../../platform/database/database.js';
import type { AgentArchiveRow } from '../../platform/database/models.js';
import { NotFoundError } from '../../lib/errors.js';

/** Lists an agent's archived memories, newest first. */
export async function listArchives(
  tenant: TenantDatabase,
  agentId: string,
): Promise<AgentArchiveRow[]> {
  return tenant.transaction((db) => archivesOf(db, agentId));
}

export function archivesOf(db: TenantTransaction, agentId: string): Promise<AgentArchiveRow[]> {
  return db.AgentArchive.findAll({
    where: { agentId },
    order: [
      ['createdAt', 'DESC'],
      ['id', 'DESC'],
    ],
  });
}

/** Returns an archived memory. @throws NotFoundError also when the archive is another agent's. */
export async function getArchive(
  tenant: TenantDatabase,
  agentId: string,
  id: string,
): Promise<AgentArchiveRow> {
  const archive = (await listArchives(tenant, agentId)).find((each) => each.id === id);
  if (!archive) throw new NotFoundError('Archive not found');
  return archive;
}
