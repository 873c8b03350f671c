import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { RetentionActivities } from '../../../activities/retention.js';
import type { OldRemoved, removeOld } from '../../../workflows/remove-old.js';
import { IN_THIS_THREAD } from './in-this-thread.js';

/** One pass over what is kept for a time only, with a worker of its own that does this. */
export async function retentionPass(
  environment: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundleWithSourceMap,
  activities: RetentionActivities,
): Promise<{ readonly workflowId: string; readonly result: OldRemoved }> {
  const { client, nativeConnection: connection, namespace = 'default' } = environment;
  const workflowId = `remove-old-${randomUUID()}`;
  const common = { connection, namespace, taskQueue: workflowId, maxCachedWorkflows: 0 };
  const worker = await Worker.create({ ...common, ...IN_THIS_THREAD, workflowBundle, activities });
  const result = await worker.runUntil(
    client.workflow.execute<typeof removeOld>('removeOld', { workflowId, taskQueue: workflowId }),
  );
  return { workflowId, result };
}
