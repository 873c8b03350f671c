import { Op } from 'sequelize';
import type { Database } from '../src/database/database.js';
import { scheduleHeartbeat, type HeartbeatScheduler } from '../src/heartbeat/heartbeats.js';

/** Longer than whoever has changed a setting takes to let its schedule follow. */
const ABANDONED_MS = 15_000;

/** The rest waits for the next pass. */
const MAX_AT_ONCE = 200;

/** Lets the schedules follow those settings of which nobody knows whether they do. */
export async function recoverHeartbeats(
  database: Database,
  scheduler: HeartbeatScheduler,
): Promise<void> {
  const abandoned = await database.asPlatform().transaction((db) =>
    db.Heartbeat.findAll({
      where: { scheduled: false, updatedAt: { [Op.lt]: new Date(Date.now() - ABANDONED_MS) } },
      order: [['updatedAt', 'ASC']],
      limit: MAX_AT_ONCE,
    }),
  );
  for (const { userId } of abandoned) {
    await scheduleHeartbeat(database.asUser(userId), scheduler, userId);
  }
}
