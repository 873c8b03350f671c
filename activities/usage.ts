import type { Database } from '../src/database/database.js';
import { rollUpUsage, settleAbandoned } from '../src/usage/rollups.js';

/** What keeps usage and quotas in order. Run as local activities: short and idempotent. */
export function createUsageActivities(database: Database) {
  return {
    /** @returns how many sums were added to their days. */
    rollUpUsage: () => rollUpUsage(database),

    /** @returns how many reservations of calls were given back. */
    settleAbandoned: () => settleAbandoned(database),
  };
}

export type UsageActivities = ReturnType<typeof createUsageActivities>;
