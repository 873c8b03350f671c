import { proxyActivities } from '@temporalio/workflow';
import type {
  PaymentSessionActivities,
  SessionHoldActivities,
} from '../activities/payment-sessions.js';
import type { PaymentActivities } from '../activities/payments.js';
import { PAYMENTS_TASK_QUEUE } from './ids.js';
import * as retries from './retries.js';

/**
 * Does for a payment session what is to be done on chain. All that it knows stands in rows: begun anew at
 * any moment it goes on with what is left.
 *
 * @param id of its row.
 * @returns false for a session that was not opened.
 */
export async function settlePaymentSession(id: string): Promise<boolean> {
  return openSession(id);
}

/** Has the deposit held, once it is asked for and final. */
async function openSession(id: string): Promise<boolean> {
  const { requestSessionHold } = proxyActivities<SessionHoldActivities>({
    ...retries.recordsAnywhere,
    taskQueue: PAYMENTS_TASK_QUEUE,
  });
  const { awaitPayment } = proxyActivities<PaymentActivities>({
    ...retries.paying,
    taskQueue: PAYMENTS_TASK_QUEUE,
  });
  const { finishSessionOpening } = proxyActivities<PaymentSessionActivities>(
    retries.recordsAnywhere,
  );
  const cause = await requestSessionHold(id);
  if (cause !== undefined) await awaitPayment(cause);
  return finishSessionOpening(id);
}
