import type { Database } from '../../platform/database/database.js';
import { refusesData } from '../../platform/database/constraints.js';
import type { UsageRecord } from './usage-record.js';

const SETTLE = { name: 'settle_usage', text: 'SELECT settle_usage($1, $2)' };

/** What the database will not take, and why. */
export interface RefusedRecord {
  readonly record: UsageRecord;
  readonly error: unknown;
}

/**
 * Writes what calls used, each once however often it is given, and frees what was held for them. A
 * record that the database refuses is found by halves, so that it does not keep the others out.
 *
 * @param over reservations by which nothing is to be held any more. No later record may name one.
 * @returns what was refused; what was held for it is free when its reservation is over.
 */
export async function settleUsage(
  database: Database,
  records: readonly UsageRecord[],
  over: readonly string[],
): Promise<RefusedRecord[]> {
  try {
    await database.call(SETTLE, [JSON.stringify(records), [...over]]);
    return [];
  } catch (error) {
    const [record] = records;
    if (record === undefined || !refusesData(error)) throw error;
    if (records.length === 1) {
      await settleUsage(database, [], over);
      return [{ record, error }];
    }
    const half = Math.ceil(records.length / 2);
    const first = await settleUsage(database, records.slice(0, half), []);
    return [...first, ...(await settleUsage(database, records.slice(half), over))];
  }
}
