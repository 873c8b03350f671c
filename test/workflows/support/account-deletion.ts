import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { AccountDeletionActivities } from '../../../activities/account-deletion.js';
import { accountDeletionRuns } from '../../../temporal/row-runs.js';
import { deleteAccountId, PLATFORM_TASK_QUEUE } from '../../../workflows/ids.js';
import { IN_THIS_THREAD } from './in-this-thread.js';

/**
 * Starts a worker for account deletions with these activities; it keeps no state of a run after the run
 * ends.
 */
export function deletionWorker(
  environment: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundleWithSourceMap,
  activities: AccountDeletionActivities,
): Promise<Worker> {
  const { nativeConnection: connection, namespace = 'default' } = environment;
  return Worker.create({
    connection,
    namespace,
    taskQueue: PLATFORM_TASK_QUEUE,
    workflowBundle,
    activities,
    ...IN_THIS_THREAD,
    maxCachedWorkflows: 0,
    maxHeartbeatThrottleInterval: '100 milliseconds',
    shutdownGraceTime: 0,
  });
}

/** Runs the deletion of an account to its end. */
export async function deleteAccount(
  environment: TestWorkflowEnvironment,
  bundle: WorkflowBundleWithSourceMap,
  userId: string,
  activities: AccountDeletionActivities,
): Promise<void> {
  const { client } = environment;
  const worker = await deletionWorker(environment, bundle, activities);
  await worker.runUntil(async () => {
    await accountDeletionRuns(client).start(userId);
    await client.workflow.getHandle(deleteAccountId(userId)).result();
  });
}
