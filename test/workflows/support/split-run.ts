import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { PaymentActivities } from '../../../activities/payments.js';
import type { SplitActivities } from '../../../activities/splits.js';
import type { SplitStatus } from '../../../src/types/split-states.js';
import { payRoyaltySplitId, PAYMENTS_TASK_QUEUE } from '../../../workflows/ids.js';
import type { payRoyaltySplit } from '../../../workflows/pay-royalty-split.js';
import { runAlone } from './run-alone.js';

/** Activities that the run of a split requests from the platform and the payment workers. */
export type SplitRunActivities = SplitActivities & Pick<PaymentActivities, 'awaitPayment'>;

/** Runs one split with workers of its own. */
export async function splitRun(
  environment: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundleWithSourceMap,
  { awaitPayment, ...activities }: SplitRunActivities,
  id: string = randomUUID(),
): Promise<{ readonly workflowId: string; readonly result: SplitStatus | undefined }> {
  const workflowId = payRoyaltySplitId(id);
  const elsewhere = { taskQueue: PAYMENTS_TASK_QUEUE, activities: { awaitPayment } };
  const alone = { workflowId, activities, elsewhere };
  const result = await runAlone(environment, workflowBundle, alone, (workflows, started) =>
    workflows.execute<typeof payRoyaltySplit>('payRoyaltySplit', { ...started, args: [id] }),
  );
  return { workflowId, result };
}
