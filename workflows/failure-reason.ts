import {
  ActivityFailure,
  ApplicationFailure,
  ChildWorkflowFailure,
  TimeoutFailure,
} from '@temporalio/common';

export function innermostFailure(error: unknown): unknown {
  let innermost: unknown = error;
  while (
    (innermost instanceof ActivityFailure || innermost instanceof ChildWorkflowFailure) &&
    innermost.cause
  ) {
    innermost = innermost.cause;
  }
  return innermost;
}

/** Returns the message of the innermost failure, which users see. */
export function failureReason(error: unknown): string {
  const innermost = innermostFailure(error);
  if (innermost instanceof TimeoutFailure) {
    return error instanceof ActivityFailure
      ? `${error.activityType} did not finish in time`
      : 'It did not finish in time';
  }
  return innermost instanceof Error ? innermost.message : 'Unknown failure';
}

/** Failure type of a call that Docker refused in every attempt. */
const LASTING_REFUSAL = 'LastingRefusalError';

export function isRefusal(error: unknown): boolean {
  const failure = innermostFailure(error);
  return failure instanceof ApplicationFailure && failure.type === LASTING_REFUSAL;
}
