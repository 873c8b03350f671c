import type { Logger } from 'pino';
import type { Database } from '../src/platform/database/database.js';
import type { HeartbeatScheduler, HeartbeatSetting } from '../src/agents/heartbeat/heartbeats.js';
import { followRows, type FollowedRows } from './follow-rows.js';

interface HeartbeatScheduling {
  readonly database: Database;
  readonly schedules: HeartbeatScheduler;
  readonly log: Logger;
}

/** Returns users' heartbeats, which Temporal's schedules follow. */
export const followedHeartbeats = ({
  database,
  schedules,
  log,
}: HeartbeatScheduling): FollowedRows<HeartbeatSetting> => ({
  find: (most) =>
    database.asPlatform().transaction((db) =>
      db.Heartbeat.findAll({
        where: { scheduled: false },
        order: [['updatedAt', 'ASC']],
        limit: most,
      }),
    ),
  apply: (heartbeat) => schedules.apply(heartbeat),
  note: (heartbeat) => noteScheduled(database, heartbeat),
  refuse: ({ userId }, error) => {
    log.error({ err: error, userId }, 'a heartbeat cannot be scheduled');
    return Promise.resolve();
  },
  noticeLost: () => noticeLost(database),
  failure: 'heartbeats could not be scheduled, retrying',
});

/** Updates the schedules. @throws UnavailableError if Temporal is unreachable: the rest waits for the next pass. */
export async function scheduleHeartbeats(scheduling: HeartbeatScheduling): Promise<void> {
  await followRows(followedHeartbeats(scheduling));
}

/** Marks heartbeats missing for twice their interval to be scheduled again: Temporal may have lost them. */
export async function noticeLost(database: Database): Promise<void> {
  await database.asPlatform().query(
    `UPDATE heartbeats SET scheduled = false
      WHERE enabled AND scheduled
        AND greatest(updated_at, last_heartbeat_at) < now() - 2 * frequency::interval`,
  );
}

/**
 * Marks a schedule as applied if the setting is unchanged; otherwise it must be applied again, because this
 * worker may have overwritten another worker's update.
 */
async function noteScheduled(
  database: Database,
  { userId, updatedAt }: HeartbeatSetting,
): Promise<void> {
  await database
    .asUser(userId)
    .query('UPDATE heartbeats SET scheduled = (updated_at = $updatedAt) WHERE user_id = $userId', {
      userId,
      updatedAt,
    });
}
