import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { Misbehaviour } from './fake-agent.js';

/** A failure that no other attempt mends, as activities tell it. */
export const refuse =
  (type = 'RefusedError'): Misbehaviour =>
  () => {
    throw ApplicationFailure.nonRetryable(`refused: ${type}`, type);
  };

/** A failure that another attempt may mend: of the first attempts, or of all. */
export const stumble =
  (attempts = Number.POSITIVE_INFINITY): Misbehaviour =>
  (attempt) => {
    if (attempt <= attempts) throw ApplicationFailure.retryable('stumbled', 'StumbledError');
  };

/** Goes on, and says so, until it is cancelled; then ends as cancelled. */
export const untilCancelled: Misbehaviour = () => heartbeatUntilCancelled();

/** The same, but fails of it, as a call to a Docker daemon does that is cut off. */
export const failWhenCancelled: Misbehaviour = async () => {
  try {
    await heartbeatUntilCancelled();
  } catch {
    throw ApplicationFailure.nonRetryable('cut off', 'CutOffError');
  }
};

/** Neither ends nor says anything: whoever asked has to give up on it. */
export const hang: Misbehaviour = () => Context.current().cancelled;

async function heartbeatUntilCancelled(): Promise<void> {
  const context = Context.current();
  context.heartbeat();
  const timer = setInterval(() => context.heartbeat(), 50);
  try {
    await context.cancelled;
  } finally {
    clearInterval(timer);
  }
}
