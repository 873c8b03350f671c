import type { HousekeepingActivities } from '../activities/housekeeping.js';
import { proxyRecords } from './records.js';

export interface UsageRolledUp {
  /** Usage sums that were added to their daily totals. */
  readonly rolledUp: number;
}

/** Makes one pass over usage records; the next pass handles the rest. */
export async function rollUpUsage(): Promise<UsageRolledUp> {
  const usage = proxyRecords<HousekeepingActivities>();
  return { rolledUp: await usage.rollUpUsage() };
}
