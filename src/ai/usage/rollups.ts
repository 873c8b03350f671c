import type { Database, FunctionCall } from '../../platform/database/database.js';
import { processInBatches } from './in-batches.js';

const BATCH = 5_000;

/**
 * Adds pending sums to the daily sums, for a few seconds at most; returns how many. Each sum moves in one
 * transaction, so it counts exactly once despite concurrent calls and crashes.
 */
export function rollUpUsage(database: Database): Promise<number> {
  return processInBatches(BATCH, (most) => count(database, ROLL_UP, most));
}

const SETTLED_AT_ONCE = 500;

/** Releases reservations of processes without signs of life, for a few seconds at most; returns how many. */
export function settleAbandoned(database: Database): Promise<number> {
  return processInBatches(SETTLED_AT_ONCE, (most) => count(database, SETTLE_ABANDONED, most));
}

const ROLL_UP = { name: 'roll_up_usage', text: 'SELECT roll_up_usage($1) AS done' };
const SETTLE_ABANDONED = { name: 'settle_abandoned', text: 'SELECT settle_abandoned($1) AS done' };

async function count(database: Database, statement: FunctionCall, most: number): Promise<number> {
  const [row] = await database.call<{ done: number }>(statement, [most]);
  return row?.done ?? 0;
}
