import type { Database } from '../src/platform/database/database.js';
import { rollUpUsage } from '../src/ai/usage/rollups.js';

/**
 * What keeps the database in order, for workflows on schedules. Run as local activities: short and
 * idempotent.
 */
export function createHousekeepingActivities(database: Database) {
  return {
    /** @returns how many sums were added to their days. */
    rollUpUsage: () => rollUpUsage(database),
  };
}

export type HousekeepingActivities = ReturnType<typeof createHousekeepingActivities>;
