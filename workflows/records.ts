import { ActivityFailure, ApplicationFailure } from '@temporalio/common';
import {
  isCancellation,
  log,
  proxyActivities,
  proxyLocalActivities,
  type UntypedActivities,
} from '@temporalio/workflow';
import type { RecordActivities } from '../activities/records.js';
import { failureReason } from './failure-reason.js';
import * as retries from './retries.js';

/**
 * Returns the database activities of a workflow. Its own worker runs them at once as local activities; if it
 * cannot reach the database, any worker runs them, with unlimited retries.
 */
export function proxyRecords<Records = RecordActivities>(): Records {
  const here = proxyLocalActivities<UntypedActivities>(retries.records);
  const anywhere = proxyActivities<UntypedActivities>(retries.recordsAnywhere);
  const record =
    (name: string) =>
    async (...args: unknown[]): Promise<unknown> => {
      try {
        return await here[name]?.(...args);
      } catch (error) {
        if (isCancellation(error) || isFinal(error)) throw error;
        log.warn('local database access failed: handing the activity to any worker', {
          name,
          reason: failureReason(error),
        });
        return anywhere[name]?.(...args);
      }
    };
  // Each property is the function of one activity, with that activity's arguments and result.
  return new Proxy({}, { get: (_, name) => record(String(name)) }) as Records;
}

function isFinal(error: unknown): boolean {
  // A local activity throws its failure itself, a remote one as the cause.
  const failure = error instanceof ActivityFailure ? error.cause : error;
  return failure instanceof ApplicationFailure && failure.nonRetryable === true;
}
