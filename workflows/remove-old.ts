import { isCancellation, log, proxyActivities } from '@temporalio/workflow';
import type { RetentionActivities } from '../activities/retention.js';
import type { Retained } from '../src/retention/retained.js';
import { failureReason } from './failure-reason.js';
import * as retries from './retries.js';

/** Rows that were removed; of what could not be removed, nothing. */
export type OldRemoved = Partial<Record<Retained, number>>;

/** One pass over what is kept for a time only; what it does not come to is left to the next. */
export async function removeOld(): Promise<OldRemoved> {
  const records = proxyActivities<RetentionActivities>(retries.retention);
  const removed: OldRemoved = {};
  // Asked for, so that one more of them is no change of this workflow.
  for (const what of await records.retainedKinds()) {
    try {
      removed[what] = await records.removeOldRows(what);
    } catch (error) {
      if (isCancellation(error)) throw error;
      log.warn('what is old was not removed', { what, reason: failureReason(error) });
    }
  }
  return removed;
}
