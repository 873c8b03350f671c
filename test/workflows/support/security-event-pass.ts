import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { SecurityEventActivities } from '../../../activities/security-events.js';
import type { applySecurityEvent } from '../../../workflows/apply-security-event.js';
import { applySecurityEventId } from '../../../workflows/ids.js';
import { IN_THIS_THREAD } from './in-this-thread.js';

/** What one token told is applied, with a worker of its own that does this. */
export async function securityEventPass(
  environment: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundleWithSourceMap,
  activities: SecurityEventActivities,
): Promise<{ readonly workflowId: string }> {
  const { client, nativeConnection: connection, namespace = 'default' } = environment;
  const id = randomUUID();
  const common = { connection, namespace, taskQueue: id, maxCachedWorkflows: 0 };
  const worker = await Worker.create({ ...common, ...IN_THIS_THREAD, workflowBundle, activities });
  const workflowId = applySecurityEventId(id);
  const started = { workflowId, taskQueue: id, args: [id] as [string] };
  await worker.runUntil(
    client.workflow.execute<typeof applySecurityEvent>('applySecurityEvent', started),
  );
  return { workflowId };
}
