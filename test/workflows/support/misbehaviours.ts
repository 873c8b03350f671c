import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { Misbehaviour } from './fake-agent.js';

/** Fails permanently, with the failure that activities throw. */
export const refuse =
  (type = 'RefusedError'): Misbehaviour =>
  () => {
    throw ApplicationFailure.nonRetryable(`refused: ${type}`, type);
  };

/** Fails in a retryable way, for the first attempts or for all. */
export const stumble =
  (attempts = Number.POSITIVE_INFINITY): Misbehaviour =>
  (attempt) => {
    if (attempt <= attempts) throw ApplicationFailure.retryable('stumbled', 'StumbledError');
  };

/** Sends heartbeats until it is cancelled, then ends as cancelled. */
export const untilCancelled: Misbehaviour = () => heartbeatUntilCancelled();

/** Sends heartbeats until it is cancelled, then fails, as an aborted Docker call does. */
export const failWhenCancelled: Misbehaviour = async () => {
  try {
    await heartbeatUntilCancelled();
  } catch {
    throw ApplicationFailure.nonRetryable('cut off', 'CutOffError');
  }
};

/** Never ends and sends no heartbeats: the caller has to time out. */
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
