import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { ReconcileActivities } from '../../../activities/reconcile.js';
import type { SupervisionActivities, SupervisionFound } from '../../../activities/supervision.js';
import { containersTaskQueue } from '../../../workflows/ids.js';
import type { HostReconciled, reconcileHost } from '../../../workflows/reconcile-host.js';
import { runAlone } from './run-alone.js';

/** The result when every supervisor is running. */
export const ALL_MOVE: SupervisionFound = {
  missing: 0,
  stuck: 0,
  blocked: 0,
  failed: 0,
  unseen: [],
};

/** Runs one pass over a host with these findings. */
export async function reconcilePass(
  environment: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundleWithSourceMap,
  host: ReconcileActivities,
  platform: SupervisionActivities = { ensureSupervisors: () => Promise.resolve(ALL_MOVE) },
): Promise<{ readonly workflowId: string; readonly result: HostReconciled }> {
  const name = randomUUID();
  const workflowId = `reconcile-${name}`;
  const elsewhere = { taskQueue: containersTaskQueue(name), activities: host };
  const alone = { workflowId, activities: platform, elsewhere };
  const result = await runAlone(environment, workflowBundle, alone, (workflows, started) =>
    workflows.execute<typeof reconcileHost>('reconcileHost', { ...started, args: [name] }),
  );
  return { workflowId, result };
}
