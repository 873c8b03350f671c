import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { CloneActivities } from '../../../activities/clones.js';
import type { cloneAgent } from '../../../workflows/clone-agent.js';
import { cloneAgentId } from '../../../workflows/ids.js';
import { IN_THIS_THREAD } from './in-this-thread.js';

/** The run that makes one clone, with a worker of its own. */
export async function cloneRun(
  environment: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundleWithSourceMap,
  activities: CloneActivities,
  cloneId: string = randomUUID(),
): Promise<{ readonly workflowId: string; readonly made: boolean }> {
  const { client, nativeConnection: connection, namespace = 'default' } = environment;
  const workflowId = cloneAgentId(cloneId);
  const common = { connection, namespace, taskQueue: workflowId, maxCachedWorkflows: 0 };
  const worker = await Worker.create({ ...common, ...IN_THIS_THREAD, workflowBundle, activities });
  const made = await worker.runUntil(
    client.workflow.execute<typeof cloneAgent>('cloneAgent', {
      ...{ workflowId, taskQueue: workflowId },
      args: [cloneId],
    }),
  );
  return { workflowId, made };
}
