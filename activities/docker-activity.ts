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

type Activities = Readonly<Record<string, (...args: never[]) => Promise<unknown>>>;

/** Activities that all of them are in Docker. */
export function dockerActivities<T extends Activities>(activities: T): T {
  const each = Object.entries(activities).map(([name, activity]) => [
    name,
    (...args: never[]) => dockerActivity(() => activity(...args)),
  ]);
  // Each takes and answers what it did before.
  return Object.fromEntries(each) as T;
}
