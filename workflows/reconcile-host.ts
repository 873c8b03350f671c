import { proxyActivities, workflowInfo } from '@temporalio/workflow';
import type { ReconcileActivities } from '../activities/reconcile.js';
import type { SupervisionActivities, SupervisionFound } from '../activities/supervision.js';
import { containersTaskQueue } from './ids.js';
import * as retries from './retries.js';

export interface HostReconciled {
  readonly supervisors: SupervisionFound;
  /** Agents that were not in their desired state; their supervisors were signalled. */
  readonly drifted: number;
  /** Ids of removed agents with leftovers; leftovers found again by the next pass are removed. */
  readonly orphans: readonly string[];
}

/** Compares a Docker host's actual with its desired state; supervisors first, since they need no Docker. */
export async function reconcileHost(host: string): Promise<HostReconciled> {
  const docker = proxyActivities<ReconcileActivities>({
    ...retries.reconciliation,
    taskQueue: containersTaskQueue(host),
  });
  const platform = proxyActivities<SupervisionActivities>(retries.reconciliation);
  const supervisors = await platform.ensureSupervisors(host);
  // Result of the last completed pass of the schedule; undefined in the first one.
  const before = workflowInfo().lastResult as HostReconciled | undefined;
  const drifted = await docker.wakeDrifted();
  const orphans = await docker.removeOrphans(before?.orphans ?? []);
  return { supervisors, drifted, orphans };
}
