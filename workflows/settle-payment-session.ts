import { continueAsNew, proxyActivities } from '@temporalio/workflow';
import type {
  PaymentSessionActivities,
  SessionHoldActivities,
  SettlementActivities,
} from '../activities/payment-sessions.js';
import type { PaymentActivities } from '../activities/payments.js';
import type { PaymentSessionState } from '../src/types/payment-session-states.js';
import { PAYMENTS_TASK_QUEUE } from './ids.js';
import { proxyRecords } from './records.js';
import * as retries from './retries.js';

/** Steps of a run; each adds a few events to its history. */
const MAX_STEPS = 20;

/**
 * Makes the chain transactions that a payment session, by the id of its row, needs now: holds its deposit,
 * settles debits, closes it. All state is in rows; a new run is started whenever something is due.
 */
export async function settlePaymentSession(id: string): Promise<PaymentSessionState | undefined> {
  if (!(await openSession(id))) return 'failed';
  const { requestSettlement } = proxyActivities<SettlementActivities>(retries.recordsAnywhere);
  const { awaitDebits } = proxyActivities<SettlementActivities>(retries.untilOver);
  const records = proxyRecords<SettlementActivities>();
  for (let steps = 0; steps < MAX_STEPS; steps += 1) {
    const step = await requestSettlement(id);
    switch (step.next) {
      case 'nothing':
        return step.state;
      case 'debits':
        await awaitDebits(id);
        break;
      case 'payment':
        await paying().awaitPayment(step.cause);
        await records.recordSettlement(id, step.cause);
    }
  }
  return continueAsNew<typeof settlePaymentSession>(id);
}

/** Holds the deposit once the session requests it, and waits until the hold is final. */
async function openSession(id: string): Promise<boolean> {
  const { requestSessionHold } = proxyActivities<SessionHoldActivities>({
    ...retries.recordsAnywhere,
    taskQueue: PAYMENTS_TASK_QUEUE,
  });
  const { finishSessionOpening } = proxyActivities<PaymentSessionActivities>(
    retries.recordsAnywhere,
  );
  const cause = await requestSessionHold(id);
  if (cause !== undefined) await paying().awaitPayment(cause);
  return finishSessionOpening(id);
}

const paying = () =>
  proxyActivities<PaymentActivities>({ ...retries.paying, taskQueue: PAYMENTS_TASK_QUEUE });
