import type { Database } from '../../platform/database/database.js';

/**
 * Records that an installation is alive (spec 4.11). An unknown installation changes nothing and gets an
 * identical response, because the caller is not authenticated.
 */
export async function recordHeartbeat(database: Database, userId: string): Promise<void> {
  await database.asUser(userId).transaction(async (db) => {
    await db.Installation.update({ lastSeen: new Date(), status: 'active' }, { where: { userId } });
  });
}
