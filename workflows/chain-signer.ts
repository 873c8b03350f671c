import { continueAsNew, proxyActivities, setHandler, workflowInfo } from '@temporalio/workflow';
import type { PaymentActivities } from '../activities/payments.js';
import { wakeSignal } from './chain-signer-messages.js';
import { PAYMENTS_TASK_QUEUE } from './ids.js';
import * as retries from './retries.js';

/** Makes all payments of one signer on one chain, and ends when none are left. */
export async function chainSigner(signerId: string): Promise<void> {
  let isWoken = true;
  setHandler(wakeSignal, () => {
    isWoken = true;
  });
  const payments = proxyActivities<PaymentActivities>({
    ...retries.paying,
    taskQueue: PAYMENTS_TASK_QUEUE,
  });
  while (isWoken) {
    isWoken = false;
    await payments.payAll(signerId);
    if (isWoken && workflowInfo().continueAsNewSuggested) {
      await continueAsNew<typeof chainSigner>(signerId);
    }
  }
}
