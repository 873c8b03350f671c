import { QueryTypes } from 'sequelize';
import type { Database } from '../database/database.js';
import { inBatches } from './in-batches.js';

/** Pending sums of one transaction. */
const BATCH = 5_000;

/**
 * Adds what is pending to the days' sums, for a few seconds at most. Each is added exactly once,
 * however many do this at a time and wherever one of them dies: in one transaction it is taken from
 * `usage_pending` and added to `usage_daily`. What is left, the next pass adds.
 *
 * @returns how many were added.
 */
export function rollUpUsage(database: Database): Promise<number> {
  return inBatches(BATCH, (most) => count(database, 'SELECT roll_up_usage($most) AS done', most));
}

/** Reservations of one transaction. */
const SETTLED_AT_ONCE = 500;

/**
 * Gives back what is held for calls whose process has not been heard of, for a few seconds at most.
 *
 * @returns how many reservations there were.
 */
export function settleAbandoned(database: Database): Promise<number> {
  return inBatches(SETTLED_AT_ONCE, (most) =>
    count(database, 'SELECT settle_abandoned($most) AS done', most),
  );
}

/** Both look behind the policies, and at everybody's: neither needs a tenant. */
async function count({ sequelize }: Database, sql: string, most: number): Promise<number> {
  const [row] = await sequelize.query<{ done: number }>(sql, {
    type: QueryTypes.SELECT,
    bind: { most },
  });
  return row?.done ?? 0;
}
