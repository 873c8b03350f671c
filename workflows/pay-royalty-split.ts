import { proxyActivities } from '@temporalio/workflow';
import type { PaymentActivities } from '../activities/payments.js';
import type { SplitActivities } from '../activities/splits.js';
import type { SplitStatus } from '../src/types/split-states.js';
import { PAYMENTS_TASK_QUEUE } from './ids.js';
import { proxyRecords } from './records.js';
import * as retries from './retries.js';

/**
 * Pays the unpaid parts of a split, by the id of its row, and waits until all payments are final. All state
 * is in rows, so a new run continues with the rest. Returns undefined if the split no longer exists.
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
