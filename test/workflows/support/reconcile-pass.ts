import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { ReconcileActivities } from '../../../activities/reconcile.js';
import type { SupervisionActivities, SupervisionFound } from '../../../activities/supervision.js';
import { containersTaskQueue } from '../../../workflows/ids.js';
import type { HostReconciled, reconcileHost } from '../../../workflows/reconcile-host.js';
import { IN_THIS_THREAD } from './in-this-thread.js';

/** Of its own, beside the one of a `WorkflowLab` on the same server. */
const TASK_QUEUE = 'reconcile-lab';

/** All is well with the agents' supervisors. */
export const ALL_MOVE: SupervisionFound = {
  missing: 0,
  stuck: 0,
  blocked: 0,
  failed: 0,
  unseen: [],
};

/** One pass over a host that finds what it is given to find. */
export async function reconcilePass(
  environment: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundleWithSourceMap,
  host: ReconcileActivities,
  platform: SupervisionActivities = { ensureSupervisors: () => Promise.resolve(ALL_MOVE) },
): Promise<{ readonly workflowId: string; readonly result: HostReconciled }> {
  const { client, nativeConnection: connection, namespace = 'default' } = environment;
  const name = randomUUID();
  const common = { connection, namespace };
  const workers = await Promise.all([
    Worker.create({
      ...common,
      ...{ ...IN_THIS_THREAD, workflowBundle, activities: platform },
      ...{ taskQueue: TASK_QUEUE, maxCachedWorkflows: 0 },
    }),
    Worker.create({ ...common, taskQueue: containersTaskQueue(name), activities: host }),
  ]);
  const running = Promise.all(workers.map((worker) => worker.run()));
  const workflowId = `reconcile-${name}`;
  try {
    const result = await client.workflow.execute<typeof reconcileHost>('reconcileHost', {
      workflowId,
      taskQueue: TASK_QUEUE,
      args: [name],
    });
    return { workflowId, result };
  } finally {
    for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
    await running;
  }
}
