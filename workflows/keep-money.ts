import type { MoneyRecordActivities } from '../activities/money.js';
import { proxyRecords } from './records.js';

export interface MoneyKept {
  /** Holds past their end, which are free again. */
  readonly released: number;
}

/** One pass over what is held; what it does not come to is left to the next. */
export async function keepMoney(): Promise<MoneyKept> {
  const money = proxyRecords<MoneyRecordActivities>();
  return { released: await money.releaseEndedHolds() };
}
