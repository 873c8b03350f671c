import { proxyActivities, workflowInfo } from '@temporalio/workflow';
import type { ReconcileActivities } from '../activities/reconcile.js';
import { containersTaskQueue } from './ids.js';
import * as retries from './retries.js';

export interface HostReconciled {
  /** Agents that were not as they should be, and whose supervisors were told to look. */
  readonly astray: number;
  /** Ids of removed agents of which something was left; what the next pass finds too, it removes. */
  readonly orphans: readonly string[];
}

/** One pass over a Docker host: what runs against what should. Its schedule starts it. */
export async function reconcileHost(host: string): Promise<HostReconciled> {
  const engine = proxyActivities<ReconcileActivities>({
    ...retries.reconciliation,
    taskQueue: containersTaskQueue(host),
  });
  // Of the last pass that came to its end, by way of the schedule; undefined in the first one.
  const before = workflowInfo().lastResult as HostReconciled | undefined;
  const astray = await engine.wakeAstray();
  const orphans = await engine.removeOrphans(before?.orphans ?? []);
  return { astray, orphans };
}
