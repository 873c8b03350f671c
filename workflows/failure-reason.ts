import {
  ActivityFailure,
  ApplicationFailure,
  ChildWorkflowFailure,
  TimeoutFailure,
} from '@temporalio/common';

/** What a step's or a child's failure came from. */
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

/** The sentence that a person is told: that of the innermost failure. */
export function failureReason(error: unknown): string {
  const innermost = innermostFailure(error);
  if (innermost instanceof TimeoutFailure) {
    return error instanceof ActivityFailure
      ? `${error.activityType} did not finish in time`
      : 'It did not finish in time';
  }
  return innermost instanceof Error ? innermost.message : 'Unknown failure';
}

/** The type of the failure of what Docker has refused for as long as that is tried. */
const LASTING_REFUSAL = 'LastingRefusalError';

/** Whether a step failed because Docker is there and refuses it, each time. */
export function isRefusal(error: unknown): boolean {
  const failure = innermostFailure(error);
  return failure instanceof ApplicationFailure && failure.type === LASTING_REFUSAL;
}
