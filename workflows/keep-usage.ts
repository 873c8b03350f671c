import type { HousekeepingActivities } from '../activities/housekeeping.js';
import { proxyRecords } from './records.js';

export interface UsageKept {
  /** Reservations of calls that were given back, because nobody had heard of their process. */
  readonly settled: number;
  /** Sums of calls that were added to those of their days. */
  readonly rolledUp: number;
}

/** One pass over quotas and usage; what it does not come to is left to the next. */
export async function keepUsage(): Promise<UsageKept> {
  const usage = proxyRecords<HousekeepingActivities>();
  // First, because somebody may be waiting for it.
  const settled = await usage.settleAbandoned();
  const rolledUp = await usage.rollUpUsage();
  return { settled, rolledUp };
}
