import { WorkflowUpdateFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';

/** Returns the failure type of a refused update; undefined if the update was accepted. */
export async function refusalOf(update: Promise<unknown>): Promise<string | null | undefined> {
  try {
    await update;
  } catch (error) {
    if (error instanceof WorkflowUpdateFailedError && error.cause instanceof ApplicationFailure) {
      return error.cause.type;
    }
    throw error;
  }
  return undefined;
}
