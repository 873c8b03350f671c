import type { Statements } from '../platform/database/database.js';
import { TooManyRequestsError } from '../lib/errors.js';
import { secondsOfDayLeft } from '../lib/utc-day.js';

/** The UTC day on which messages were reserved, as `YYYY-MM-DD`. */
export type ReservedDay = string;

/** Returns the 429 of an owner whose messages of a day are used up. */
export const dailyMessagesUsedUp = (current: number, limit: number): TooManyRequestsError =>
  new TooManyRequestsError(
    'The messages of your plan for this day are used up: retry after midnight UTC',
    { max: limit, resetS: secondsOfDayLeft() },
    'MESSAGE_LIMIT_REACHED',
    { current, limit },
  );

/**
 * Counts messages that an owner's agents are to send to each other, all or none of them.
 * @throws TooManyRequestsError beyond the owner's limit of a day
 */
export async function reserveMessages(
  db: Statements,
  userId: string,
  { count, daily }: { readonly count: number; readonly daily: number },
): Promise<ReservedDay> {
  await db.query('INSERT INTO bus_counts (user_id) VALUES ($userId) ON CONFLICT DO NOTHING', {
    userId,
  });
  const [counts] = await db.query<{ day: ReservedDay; sent: number }>(
    `SELECT today::text AS day, CASE WHEN c.day = today THEN c.sent ELSE 0 END AS sent
       FROM bus_counts c, (SELECT (now() AT TIME ZONE 'UTC')::date AS today) t
      WHERE c.user_id = $userId FOR UPDATE OF c`,
    { userId },
  );
  const { day, sent } = counts ?? { day: '', sent: daily };
  if (sent + count > daily) throw dailyMessagesUsedUp(sent, daily);
  await db.query('UPDATE bus_counts SET day = $day::date, sent = $sent WHERE user_id = $userId', {
    userId,
    day,
    sent: sent + count,
  });
  return day;
}

/** Returns reserved messages that were not sent, unless the day is over. */
export async function returnMessages(
  db: Statements,
  userId: string,
  { count, day }: { readonly count: number; readonly day: ReservedDay },
): Promise<void> {
  await db.query(
    `UPDATE bus_counts SET sent = greatest(sent - $count, 0)
      WHERE user_id = $userId AND day = $day::date`,
    { userId, count, day },
  );
}
