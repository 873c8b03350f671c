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
 * What a workflow reads and writes in the database. The worker that has the workflow does it at
 * once; where it cannot reach the database, any other worker does, for as long as it takes.
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
        log.warn('another worker is asked to write it down', {
          name,
          reason: failureReason(error),
        });
        return anywhere[name]?.(...args);
      }
    };
  // Of each activity there is one function, with that activity's own arguments and answer.
  return new Proxy({}, { get: (_, name) => record(String(name)) }) as Records;
}

/** Whether no other attempt would help, wherever it is made. */
function isFinal(error: unknown): boolean {
  // What fails where it is asked for comes as it is, what is asked elsewhere as the cause.
  const failure = error instanceof ActivityFailure ? error.cause : error;
  return failure instanceof ApplicationFailure && failure.nonRetryable === true;
}
