import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { HousekeepingActivities } from '../../../activities/housekeeping.js';
import type { UsageKept, keepUsage } from '../../../workflows/keep-usage.js';
import { runAlone } from './run-alone.js';

/** One pass over usage, with a worker of its own that does this. */
export async function usagePass(
  environment: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundleWithSourceMap,
  activities: Pick<HousekeepingActivities, 'rollUpUsage'>,
): Promise<{ readonly workflowId: string; readonly result: UsageKept }> {
  const workflowId = `keep-usage-${randomUUID()}`;
  const alone = { workflowId, activities };
  const result = await runAlone(environment, workflowBundle, alone, (workflows, started) =>
    workflows.execute<typeof keepUsage>('keepUsage', started),
  );
  return { workflowId, result };
}
