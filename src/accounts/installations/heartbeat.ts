import type { Database } from '../../platform/database/database.js';

/** Records that an installation is alive (spec 4.11); callers do not learn if it is known. */
export async function recordHeartbeat(database: Database, userId: string): Promise<void> {
  await database.asUser(userId).transaction(async (db) => {
    await db.Installation.update({ lastSeen: new Date(), status: 'active' }, { where: { userId } });
  });
}
