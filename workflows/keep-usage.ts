import type { HousekeepingActivities } from '../activities/housekeeping.js';
import { proxyRecords } from './records.js';

export interface UsageKept {
  /** Sums of calls that were added to those of their days. */
  readonly rolledUp: number;
}

/** One pass over usage; what it does not come to is left to the next. */
export async function keepUsage(): Promise<UsageKept> {
  const usage = proxyRecords<HousekeepingActivities>();
  return { rolledUp: await usage.rollUpUsage() };
}
