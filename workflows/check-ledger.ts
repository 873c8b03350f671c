import { proxyActivities } from '@temporalio/workflow';
import type { LedgerChecked, MoneyActivities } from '../activities/money.js';
import * as retries from './retries.js';

/** Checks once that the ledger balances; operators are notified if it does not. */
export async function checkLedger(): Promise<LedgerChecked> {
  return proxyActivities<MoneyActivities>(retries.ledgerCheck).checkWholeLedger();
}
