import type { Database } from '../../platform/database/database.js';
import { refusesData } from '../../platform/database/constraints.js';
import type { UsageRecord } from './usage-record.js';

const SETTLE = { name: 'settle_usage', text: 'SELECT settle_usage($1, $2)' };

export interface RefusedRecord {
  readonly record: UsageRecord;
  readonly error: unknown;
}

/**
 * Writes usage records, each once even if given repeatedly, and releases reservations that no later record
 * may name. Returns the records that the database rejects, found by bisection so that they block no others.
 */
export async function settleUsage(
  database: Database,
  records: readonly UsageRecord[],
  endedReservations: readonly string[],
): Promise<RefusedRecord[]> {
  try {
    await database.call(SETTLE, [JSON.stringify(records), [...endedReservations]]);
    return [];
  } catch (error) {
    const [record] = records;
    if (record === undefined || !refusesData(error)) throw error;
    if (records.length === 1) {
      await settleUsage(database, [], endedReservations);
      return [{ record, error }];
    }
    const half = Math.ceil(records.length / 2);
    const first = await settleUsage(database, records.slice(0, half), []);
    return [...first, ...(await settleUsage(database, records.slice(half), endedReservations))];
  }
}
