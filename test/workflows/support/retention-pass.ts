import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { RetentionActivities } from '../../../activities/retention.js';
import type { OldRemoved, removeOld } from '../../../workflows/remove-old.js';
import { runAlone } from './run-alone.js';

/** One pass over what is kept for a time only, with a worker of its own that does this. */
export async function retentionPass(
  environment: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundleWithSourceMap,
  activities: RetentionActivities,
): Promise<{ readonly workflowId: string; readonly result: OldRemoved }> {
  const workflowId = `remove-old-${randomUUID()}`;
  const alone = { workflowId, activities };
  const result = await runAlone(environment, workflowBundle, alone, (workflows, started) =>
    workflows.execute<typeof removeOld>('removeOld', started),
  );
  return { workflowId, result };
}
