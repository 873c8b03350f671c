import { proxyActivities, workflowInfo } from '@temporalio/workflow';
import type { ReconcileActivities } from '../activities/reconcile.js';
import type { SupervisionActivities, SupervisionFound } from '../activities/supervision.js';
import { containersTaskQueue } from './ids.js';
import * as retries from './retries.js';

export interface HostReconciled {
  /** How many supervisors were started anew, and the agents that nobody has seen. */
  readonly supervisors: SupervisionFound;
  /** Agents that were not as they should be, and whose supervisors were told to look. */
  readonly drifted: number;
  /** Ids of removed agents of which something was left; what the next pass finds too, it removes. */
  readonly orphans: readonly string[];
}

/**
 * One pass over a Docker host: what runs against what should, the supervisors themselves first, since
 * that needs no Docker. Its schedule starts it.
 */
export async function reconcileHost(host: string): Promise<HostReconciled> {
  const docker = proxyActivities<ReconcileActivities>({
    ...retries.reconciliation,
    taskQueue: containersTaskQueue(host),
  });
  const platform = proxyActivities<SupervisionActivities>(retries.reconciliation);
  const supervisors = await platform.ensureSupervisors(host);
  // Of the last pass that came to its end, by way of the schedule; undefined in the first one.
  const before = workflowInfo().lastResult as HostReconciled | undefined;
  const drifted = await docker.wakeDrifted();
  const orphans = await docker.removeOrphans(before?.orphans ?? []);
  return { supervisors, drifted, orphans };
}
