import type { Database } from '../database/database.js';
import { refusesData } from '../database/constraints.js';
import type { UsageRecord } from './usage-record.js';

/** What the database will not take, and why. */
export interface RefusedRecord {
  readonly record: UsageRecord;
  readonly error: unknown;
}

/**
 * Writes what calls used, each once however often it is given, and frees what was held for them. A
 * record that the database refuses is found by halves, so that it does not keep the others out.
 *
 * @param givenBack calls that came to nothing.
 * @returns what was refused; nothing is held for these calls either.
 */
export async function settleUsage(
  database: Database,
  records: readonly UsageRecord[],
  givenBack: readonly string[],
): Promise<RefusedRecord[]> {
  try {
    await database.sequelize.query('SELECT settle_calls($1, $2)', {
      bind: [JSON.stringify(records), [...givenBack]],
    });
    return [];
  } catch (error) {
    const [record] = records;
    if (record === undefined || !refusesData(error)) throw error;
    if (records.length === 1) {
      await settleUsage(database, [], [...givenBack, record.callId]);
      return [{ record, error }];
    }
    const half = Math.ceil(records.length / 2);
    const first = await settleUsage(database, records.slice(0, half), givenBack);
    return [...first, ...(await settleUsage(database, records.slice(half), []))];
  }
}
