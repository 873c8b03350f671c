import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type {
  PaymentSessionActivities,
  SessionHoldActivities,
  SettlementActivities,
} from '../../../activities/payment-sessions.js';
import type { PaymentActivities } from '../../../activities/payments.js';
import { PAYMENTS_TASK_QUEUE, settlePaymentSessionId } from '../../../workflows/ids.js';
import type { settlePaymentSession } from '../../../workflows/settle-payment-session.js';
import { runAlone } from './run-alone.js';

/** Activities that the run of a session requests from the key-holding workers. */
export type SessionPaymentActivities = SessionHoldActivities &
  Pick<PaymentActivities, 'awaitPayment'>;

/** Runs one payment session with workers of its own. */
export async function sessionRun(
  environment: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundleWithSourceMap,
  of: {
    readonly platform: PaymentSessionActivities & SettlementActivities;
    readonly payments: SessionPaymentActivities;
  },
  id: string = randomUUID(),
) {
  const workflowId = settlePaymentSessionId(id);
  const elsewhere = { taskQueue: PAYMENTS_TASK_QUEUE, activities: of.payments };
  const alone = { workflowId, activities: of.platform, elsewhere };
  const result = await runAlone(environment, workflowBundle, alone, (workflows, started) =>
    workflows.execute<typeof settlePaymentSession>('settlePaymentSession', {
      ...started,
      args: [id],
    }),
  );
  return { workflowId, result };
}
