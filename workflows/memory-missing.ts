import { ApplicationFailure } from '@temporalio/common';
import { innermostFailure } from './failure-reason.js';

/** Failure type of a step that needs the agent's memory when it is missing. */
export const MEMORY_MISSING = 'MemoryMissingError';

/** Reports whether a failure was caused by a missing memory, in which case no retry can help. */
export function isMemoryMissing(error: unknown): boolean {
  const failure = innermostFailure(error);
  return failure instanceof ApplicationFailure && failure.type === MEMORY_MISSING;
}
