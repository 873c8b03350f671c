import { ApplicationFailure } from '@temporalio/common';
import { innermostFailure } from './failure-reason.js';

/** The type of the failure of what needs an agent's memory, when that is not there. */
export const MEMORY_MISSING = 'MemoryMissingError';

/** Whether something failed because the agent's memory is missing: no other attempt can help. */
export function isMemoryMissing(error: unknown): boolean {
  const failure = innermostFailure(error);
  return failure instanceof ApplicationFailure && failure.type === MEMORY_MISSING;
}
