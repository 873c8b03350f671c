import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { RetentionActivities } from '../../../activities/retention.js';
import type { RowsRemoved, enforceRetention } from '../../../workflows/enforce-retention.js';
import { runAlone } from './run-alone.js';

/** One pass over what is kept for a time only, with a worker of its own that does this. */
export async function retentionPass(
  environment: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundleWithSourceMap,
  activities: RetentionActivities,
): Promise<{ readonly workflowId: string; readonly result: RowsRemoved }> {
  const workflowId = `enforce-retention-${randomUUID()}`;
  const alone = { workflowId, activities };
  const result = await runAlone(environment, workflowBundle, alone, (workflows, started) =>
    workflows.execute<typeof enforceRetention>('enforceRetention', started),
  );
  return { workflowId, result };
}
