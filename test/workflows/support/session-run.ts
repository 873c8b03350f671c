import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type {
  PaymentSessionActivities,
  SessionHoldActivities,
  SettlementActivities,
} from '../../../activities/payment-sessions.js';
import type { PaymentActivities } from '../../../activities/payments.js';
import { PAYMENTS_TASK_QUEUE, settlePaymentSessionId } from '../../../workflows/ids.js';
import type { settlePaymentSession } from '../../../workflows/settle-payment-session.js';
import { IN_THIS_THREAD } from './in-this-thread.js';

/** What the run of a session asks for where keys are opened. */
export type SessionPaymentActivities = SessionHoldActivities &
  Pick<PaymentActivities, 'awaitPayment'>;

/** The run of one payment session, with workers of its own. */
export async function sessionRun(
  environment: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundleWithSourceMap,
  of: {
    readonly platform: PaymentSessionActivities & SettlementActivities;
    readonly payments: SessionPaymentActivities;
  },
  id: string = randomUUID(),
) {
  const { client, nativeConnection: connection, namespace = 'default' } = environment;
  const workflowId = settlePaymentSessionId(id);
  const common = { connection, namespace };
  const [runs, payments] = await Promise.all([
    Worker.create({
      ...{ ...common, ...IN_THIS_THREAD, workflowBundle, activities: of.platform },
      ...{ taskQueue: workflowId, maxCachedWorkflows: 0 },
    }),
    Worker.create({ ...common, activities: of.payments, taskQueue: PAYMENTS_TASK_QUEUE }),
  ]);
  const result = await runs.runUntil(
    payments.runUntil(
      client.workflow.execute<typeof settlePaymentSession>('settlePaymentSession', {
        workflowId,
        taskQueue: workflowId,
        args: [id],
      }),
    ),
  );
  return { workflowId, result };
}
