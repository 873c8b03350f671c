import { isCancellation, log, proxyActivities } from '@temporalio/workflow';
import type { RetentionActivities } from '../activities/retention.js';
import type { RetainedKind } from '../src/retention/retained.js';
import { failureReason } from './failure-reason.js';
import * as retries from './retries.js';

/** Numbers of removed rows by kind, without the kinds whose removal failed. */
export type RowsRemoved = Partial<Record<RetainedKind, number>>;

/** Makes one pass over data past its retention time; the next pass handles the rest. */
export async function enforceRetention(): Promise<RowsRemoved> {
  const records = proxyActivities<RetentionActivities>(retries.retention);
  const removed: RowsRemoved = {};
  // Requested from the worker, so that a new kind does not change this workflow.
  for (const what of await records.retainedKinds()) {
    try {
      removed[what] = await records.removeOldRows(what);
    } catch (error) {
      if (isCancellation(error)) throw error;
      log.warn('removal of old data failed', { what, reason: failureReason(error) });
    }
  }
  return removed;
}
