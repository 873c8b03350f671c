import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { RetentionActivities } from '../../../activities/retention.js';
import type { RowsRemoved, enforceRetention } from '../../../workflows/enforce-retention.js';
import { runAlone } from './run-alone.js';

/** Runs one retention pass with a worker of its own. */
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
