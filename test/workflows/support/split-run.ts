import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { PaymentActivities } from '../../../activities/payments.js';
import type { SplitActivities } from '../../../activities/splits.js';
import type { SplitStatus } from '../../../src/splits/states.js';
import { payRoyaltySplitId, PAYMENTS_TASK_QUEUE } from '../../../workflows/ids.js';
import type { payRoyaltySplit } from '../../../workflows/pay-royalty-split.js';
import { IN_THIS_THREAD } from './in-this-thread.js';

/** What the run of a split asks for, of the platform and of who makes payments. */
export type SplitRunActivities = SplitActivities & Pick<PaymentActivities, 'awaitPayment'>;

/** The run of one split, with workers of its own. */
export async function splitRun(
  environment: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundleWithSourceMap,
  { awaitPayment, ...activities }: SplitRunActivities,
  id: string = randomUUID(),
): Promise<{ readonly workflowId: string; readonly result: SplitStatus | undefined }> {
  const { client, nativeConnection: connection, namespace = 'default' } = environment;
  const workflowId = payRoyaltySplitId(id);
  const common = { connection, namespace };
  const [runs, payments] = await Promise.all([
    Worker.create({
      ...{ ...common, ...IN_THIS_THREAD, workflowBundle, activities },
      ...{ taskQueue: workflowId, maxCachedWorkflows: 0 },
    }),
    Worker.create({
      ...{ ...common, activities: { awaitPayment } },
      taskQueue: PAYMENTS_TASK_QUEUE,
    }),
  ]);
  const result = await runs.runUntil(
    payments.runUntil(
      client.workflow.execute<typeof payRoyaltySplit>('payRoyaltySplit', {
        workflowId,
        taskQueue: workflowId,
        args: [id],
      }),
    ),
  );
  return { workflowId, result };
}
