import type { Database, FunctionCall } from '../../platform/database/database.js';
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
  return inBatches(BATCH, (most) => count(database, ROLL_UP, most));
}

/** Reservations of one transaction. */
const SETTLED_AT_ONCE = 500;

/**
 * Gives back what is held for calls whose process has not been heard of, for a few seconds at most.
 *
 * @returns how many reservations there were.
 */
export function settleAbandoned(database: Database): Promise<number> {
  return inBatches(SETTLED_AT_ONCE, (most) => count(database, SETTLE_ABANDONED, most));
}

const ROLL_UP = { name: 'roll_up_usage', text: 'SELECT roll_up_usage($1) AS done' };
const SETTLE_ABANDONED = { name: 'settle_abandoned', text: 'SELECT settle_abandoned($1) AS done' };

async function count(database: Database, statement: FunctionCall, most: number): Promise<number> {
  const [row] = await database.call<{ done: number }>(statement, [most]);
  return row?.done ?? 0;
}
