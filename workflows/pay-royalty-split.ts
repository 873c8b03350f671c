import { proxyActivities } from '@temporalio/workflow';
import type { PaymentActivities } from '../activities/payments.js';
import type { SplitActivities } from '../activities/splits.js';
import type { SplitStatus } from '../src/types/split-states.js';
import { PAYMENTS_TASK_QUEUE } from './ids.js';
import { proxyRecords } from './records.js';
import * as retries from './retries.js';

/**
 * Pays what of a split is not paid, and waits until each payment is final. All that it knows stands in
 * rows: begun anew at any moment it goes on with what is left.
 *
 * @param id of its row.
 * @returns what became of it; undefined when it is no more.
 */
export async function payRoyaltySplit(id: string): Promise<SplitStatus | undefined> {
  const { requestSplitPayments } = proxyActivities<SplitActivities>(retries.recordsAnywhere);
  const { awaitPayment } = proxyActivities<PaymentActivities>({
    ...retries.paying,
    taskQueue: PAYMENTS_TASK_QUEUE,
  });
  const records = proxyRecords<SplitActivities>();
  for (const cause of await requestSplitPayments(id)) {
    await awaitPayment(cause);
    await records.settleSplitPayment(id, cause);
  }
  return records.finishSplit(id);
}
