import { proxyLocalActivities } from '@temporalio/workflow';
import type { HousekeepingActivities } from '../activities/housekeeping.js';
import * as retries from './retries.js';

export interface UsageKept {
  /** Reservations of calls that were given back, because nobody had heard of their process. */
  readonly settled: number;
  /** Sums of calls that were added to those of their days. */
  readonly rolledUp: number;
}

/** One pass over quotas and usage; what it does not come to is left to the next. */
export async function keepUsage(): Promise<UsageKept> {
  const usage = proxyLocalActivities<HousekeepingActivities>(retries.records);
  // First, because somebody may be waiting for it.
  const settled = await usage.settleAbandoned();
  const rolledUp = await usage.rollUpUsage();
  return { settled, rolledUp };
}
