import { Context } from '@temporalio/activity';
import { asApplicationFailure } from './failures.js';

const HEARTBEAT_MS = 2_000;

/** Heartbeats while the work runs, so that a killed worker is noticed within the heartbeat timeout. */
export async function heartbeating<T>(work: () => Promise<T>): Promise<T> {
  const context = Context.current();
  const timer = setInterval(() => context.heartbeat(), HEARTBEAT_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}

/** An activity in Docker: says that it is alive, and how it failed. */
export const dockerActivity = <T>(work: () => Promise<T>): Promise<T> =>
  asApplicationFailure(() => heartbeating(work));
