import type { MoneyRecordActivities } from '../activities/money.js';
import type { SettlementActivities } from '../activities/payment-sessions.js';
import { proxyRecords } from './records.js';

export interface MoneyKept {
  /** Holds past their end, which are free again. */
  readonly released: number;
  /** Payment sessions that are closed because of their age. */
  readonly aged: number;
}

/** One pass over what is held, and for whom; what it does not come to is left to the next. */
export async function keepMoney(): Promise<MoneyKept> {
  const money = proxyRecords<
    MoneyRecordActivities & Pick<SettlementActivities, 'closeAgedSessions'>
  >();
  const released = await money.releaseEndedHolds();
  return { released, aged: await money.closeAgedSessions() };
}
