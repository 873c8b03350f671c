import type { Database } from '../../platform/database/database.js';

/**
 * Notes that an installation is alive (spec 4.11). One that is not known leaves nothing behind,
 * and is not told apart: the caller is not authenticated.
 */
export async function recordHeartbeat(database: Database, userId: string): Promise<void> {
  await database.asUser(userId).transaction(async (db) => {
    await db.Installation.update({ lastSeen: new Date(), status: 'active' }, { where: { userId } });
  });
}
