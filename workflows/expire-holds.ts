import type { MoneyRecordActivities } from '../activities/money.js';
import { proxyRecords } from './records.js';

export interface HoldsExpired {
  readonly released: number;
  /** Payment sessions closed because of their age. */
  readonly aged: number;
}

/** Makes one pass over holds and payment sessions; the next pass handles the rest. */
export async function expireHolds(): Promise<HoldsExpired> {
  const money = proxyRecords<MoneyRecordActivities>();
  const released = await money.releaseEndedHolds();
  return { released, aged: await money.closeAgedSessions() };
}
