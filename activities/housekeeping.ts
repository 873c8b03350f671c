import type { Database } from '../src/platform/database/database.js';
import { rollUpUsage } from '../src/ai/usage/rollups.js';

/** Creates the activities that maintain the database. Run as local activities: short and idempotent. */
export function createHousekeepingActivities(database: Database) {
  return {
    rollUpUsage: () => rollUpUsage(database),
  };
}

export type HousekeepingActivities = ReturnType<typeof createHousekeepingActivities>;
