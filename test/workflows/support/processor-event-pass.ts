import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { BillingActivities } from '../../../activities/billing.js';
import type { applyProcessorEvent } from '../../../workflows/apply-processor-event.js';
import { applyProcessorEventId } from '../../../workflows/ids.js';
import { runAlone } from './run-alone.js';

/** Applies one event of the payment processor with a worker of its own. */
export async function processorEventPass(
  environment: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundleWithSourceMap,
  activities: Pick<BillingActivities, 'applyProcessorEvent' | 'readProcessorEvent'>,
): Promise<{ readonly workflowId: string; readonly result: unknown }> {
  const id = randomUUID();
  const workflowId = applyProcessorEventId(id);
  const alone = { workflowId, activities };
  const result = await runAlone(environment, workflowBundle, alone, (workflows, started) =>
    workflows.execute<typeof applyProcessorEvent>('applyProcessorEvent', {
      ...started,
      args: [id],
    }),
  );
  return { workflowId, result };
}
