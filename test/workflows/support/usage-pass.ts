import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { HousekeepingActivities } from '../../../activities/housekeeping.js';
import type { UsageRolledUp, rollUpUsage } from '../../../workflows/roll-up-usage.js';
import { runAlone } from './run-alone.js';

/** Runs one usage pass with a worker of its own. */
export async function usagePass(
  environment: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundleWithSourceMap,
  activities: Pick<HousekeepingActivities, 'rollUpUsage'>,
): Promise<{ readonly workflowId: string; readonly result: UsageRolledUp }> {
  const workflowId = `roll-up-usage-${randomUUID()}`;
  const alone = { workflowId, activities };
  const result = await runAlone(environment, workflowBundle, alone, (workflows, started) =>
    workflows.execute<typeof rollUpUsage>('rollUpUsage', started),
  );
  return { workflowId, result };
}
