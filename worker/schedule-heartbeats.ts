import type { Logger } from 'pino';
import type { Database } from '../src/platform/database/database.js';
import { UnavailableError } from '../src/lib/errors.js';
import type { HeartbeatScheduler, SetHeartbeat } from '../src/agents/heartbeat/heartbeats.js';
import { periodically } from '../src/platform/process/periodically.js';

/** Milliseconds between two looks. */
const INTERVAL_MS = 15_000;

/** Milliseconds between two looks for schedules that are lost. */
const LOST_INTERVAL_MS = 60 * 60_000;

/** The rest waits for the next pass. */
const MAX_AT_ONCE = 200;

interface HeartbeatScheduling {
  readonly database: Database;
  readonly schedules: HeartbeatScheduler;
  readonly log: Logger;
}

/** Lets the schedules follow the settings, now and again and again until the signal aborts. */
export function scheduleHeartbeatsPeriodically(
  scheduling: HeartbeatScheduling,
  signal: AbortSignal,
): Promise<void> {
  let lostSoughtAt = Number.NEGATIVE_INFINITY;
  const failure = 'heartbeats cannot be scheduled, and are tried again';
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
 * Lets the schedules follow those settings that they are not known to follow. Nothing of the
 * database is held while Temporal is asked.
 *
 * @throws UnavailableError when Temporal cannot be reached: the rest waits for the next pass.
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

/**
 * A heartbeat that has not come for twice its interval may have no schedule any more, as when
 * Temporal's store was lost: it is made again, which changes nothing where it is there.
 */
export async function noticeLost(database: Database): Promise<void> {
  await database.asPlatform().query(
    `UPDATE heartbeats SET scheduled = false
      WHERE enabled AND scheduled
        AND greatest(updated_at, last_heartbeat_at) < now() - 2 * frequency::interval`,
  );
}

/**
 * What was applied is the setting still, or else the schedule has to follow once more: what another
 * worker has made of it since, this one may have overwritten.
 */
async function noteScheduled(
  database: Database,
  { userId, updatedAt }: SetHeartbeat,
): Promise<void> {
  await database
    .asUser(userId)
    .query('UPDATE heartbeats SET scheduled = (updated_at = $updatedAt) WHERE user_id = $userId', {
      userId,
      updatedAt,
    });
}
