import type { Logger } from 'pino';
import type { Database } from '../src/platform/database/database.js';
import { UnavailableError } from '../src/lib/errors.js';
import type { HeartbeatScheduler, HeartbeatSetting } from '../src/agents/heartbeat/heartbeats.js';
import { periodically } from '../src/platform/process/periodically.js';

const INTERVAL_MS = 15_000;

/** Milliseconds between two checks for lost schedules. */
const LOST_INTERVAL_MS = 60 * 60_000;

/** Schedules of one pass; the rest wait for the next. */
const MAX_AT_ONCE = 200;

interface HeartbeatScheduling {
  readonly database: Database;
  readonly schedules: HeartbeatScheduler;
  readonly log: Logger;
}

/** Updates the schedules to match the settings, now and periodically until the signal aborts. */
export function scheduleHeartbeatsPeriodically(
  scheduling: HeartbeatScheduling,
  signal: AbortSignal,
): Promise<void> {
  let lostSoughtAt = Number.NEGATIVE_INFINITY;
  const failure = 'heartbeats could not be scheduled, retrying';
  const { log } = scheduling;
  return periodically({ everyMs: INTERVAL_MS, failure, log, work }, signal);

  async function work(): Promise<void> {
    if (performance.now() - lostSoughtAt >= LOST_INTERVAL_MS) {
      await noticeLost(scheduling.database);
      lostSoughtAt = performance.now();
    }
    await scheduleHeartbeats(scheduling);
  }
}

/**
 * Updates the schedules that may differ from their settings, without a database lock during calls to
 * Temporal.
 * @throws UnavailableError if Temporal is unreachable: the rest waits for the next pass.
 */
export async function scheduleHeartbeats({
  database,
  schedules,
  log,
}: HeartbeatScheduling): Promise<void> {
  const unscheduled = await database.asPlatform().transaction((db) =>
    db.Heartbeat.findAll({
      where: { scheduled: false },
      order: [['updatedAt', 'ASC']],
      limit: MAX_AT_ONCE,
    }),
  );
  for (const heartbeat of unscheduled) {
    try {
      await schedules.apply(heartbeat);
    } catch (error) {
      if (error instanceof UnavailableError) throw error;
      log.error({ err: error, userId: heartbeat.userId }, 'a heartbeat cannot be scheduled');
      continue;
    }
    await noteScheduled(database, heartbeat);
  }
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
