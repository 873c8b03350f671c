import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { HousekeepingActivities } from '../../../activities/housekeeping.js';
import type { UsageKept, keepUsage } from '../../../workflows/keep-usage.js';
import { IN_THIS_THREAD } from './in-this-thread.js';

/** One pass over usage, with a worker of its own that does this. */
export async function usagePass(
  environment: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundleWithSourceMap,
  activities: Pick<HousekeepingActivities, 'rollUpUsage'>,
): Promise<{ readonly workflowId: string; readonly result: UsageKept }> {
  const { client, nativeConnection: connection, namespace = 'default' } = environment;
  const workflowId = `keep-usage-${randomUUID()}`;
  const common = { connection, namespace, taskQueue: workflowId, maxCachedWorkflows: 0 };
  const worker = await Worker.create({ ...common, ...IN_THIS_THREAD, workflowBundle, activities });
  const result = await worker.runUntil(
    client.workflow.execute<typeof keepUsage>('keepUsage', { workflowId, taskQueue: workflowId }),
  );
  return { workflowId, result };
}
