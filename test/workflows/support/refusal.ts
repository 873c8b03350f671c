import { WorkflowUpdateFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';

/** The type of the failure with which an update was refused; undefined when it was admitted. */
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
