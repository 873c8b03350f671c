import { Context } from '@temporalio/activity';
import type { AgentRef } from '../src/types/agent-ref.js';
import { DockerRefusedError } from '../src/docker/containers/container-errors.js';
import { jittered } from '../src/lib/jitter.js';
import type { FairLimiter, Release } from '../src/lib/fair-limiter.js';
import { asApplicationFailure } from './failures.js';
import {
  budgetDetails,
  resetCounter,
  incrementCounter,
  LastingRefusalError,
  withinBudget,
} from './time-budget.js';

/** Heartbeats within the time after which Temporal considers an activity lost. */
const PER_TIMEOUT = 5;

/** Temporal's default priority; activities whose result a caller awaits have a smaller number. */
const USUAL_PRIORITY = 3;

/** Milliseconds for a Docker call that normally takes seconds: all attempts at one step together. */
const CALL_MS = 5 * 60_000;

/** The subject of the budget's error message. */
export const DOCKERS_CALL = 'The Docker call';

/** The workflow type whose steps are repairs. */
const REPAIR = 'repairAgent';

/**
 * Maximum number of consecutive refusals of one step: 5 minutes of pauses, as for steps whose result a
 * caller awaits.
 */
const MAX_REFUSALS = 35;

/** The name under which refusals are counted. */
export const REFUSALS = 'Refusals by Docker';

/** Timeout for an activity without a heartbeat timeout; its heartbeats only deliver cancellations. */
const USUAL_TIMEOUT_MS = 10_000;

/**
 * Sends heartbeats while the work runs, so that a killed worker is noticed within the heartbeat timeout. Each
 * is a database write in Temporal, so their interval follows from that timeout.
 */
export async function heartbeating<T>(work: () => Promise<T>): Promise<T> {
  const context = Context.current();
  const { heartbeatTimeoutMs = USUAL_TIMEOUT_MS } = context.info;
  const beat = () => context.heartbeat(budgetDetails(context));
  const timer = setInterval(beat, jittered(heartbeatTimeoutMs / PER_TIMEOUT));
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}

/** Returns the maker label for a volume: the run and the activity's id, which is constant over attempts. */
export function currentMaker(): string {
  const { activityId } = Context.current().info;
  return `${currentRunId()}/${activityId}`;
}

/** Returns the prefix of the maker labels of everything made in this run. */
export function currentRunId(): string {
  const { workflowExecution } = Context.current().info;
  if (!workflowExecution) throw new TypeError('not part of a run');
  return workflowExecution.runId;
}

export const isOfRepair = (): boolean => Context.current().info.workflowType === REPAIR;

export const dockerActivity = <T>(work: () => Promise<T>): Promise<T> =>
  asApplicationFailure(() => heartbeating(work));

/** Runs work for an agent in a slot of its owner; steps of operations go first. */
export function runForOwner<T>(
  limiter: FairLimiter,
  { userId: owner }: AgentRef,
  work: (release: Release) => Promise<T>,
): Promise<T> {
  const { cancellationSignal: signal, info } = Context.current();
  const isUrgent = (info.priority?.priorityKey ?? USUAL_PRIORITY) < USUAL_PRIORITY;
  return limiter.run({ owner, isUrgent, signal }, work);
}

/**
 * Bounds all attempts together if their number is limited, that is if a caller awaits the result. Otherwise
 * each attempt at a hanging Docker would last until its timeout.
 */
export function withinCallBudget<T>(work: () => Promise<T>): Promise<T> {
  const { maximumAttempts = 0 } = Context.current().info.retryPolicy ?? {};
  const isEndless = maximumAttempts === 0 || maximumAttempts === Infinity;
  return isEndless ? withinRefusals(work) : withinBudget(DOCKERS_CALL, CALL_MS, work);
}

/**
 * Limits consecutive refusals of a step without a deadline: a Docker that answers and refuses each time would
 * be retried silently forever. @throws LastingRefusalError
 */
export async function withinRefusals<T>(work: () => Promise<T>): Promise<T> {
  try {
    const done = await work();
    resetCounter(REFUSALS);
    return done;
  } catch (error) {
    if (!(error instanceof DockerRefusedError)) throw error;
    throw incrementCounter(REFUSALS) >= MAX_REFUSALS ? new LastingRefusalError(error) : error;
  }
}

type Activities = Readonly<Record<string, (...args: never[]) => Promise<unknown>>>;
type AgentActivities = Readonly<
  Record<string, (agent: AgentRef, ...args: never[]) => Promise<unknown>>
>;

export function dockerActivities<T extends Activities>(activities: T): T {
  const each = Object.entries(activities).map(([name, activity]) => [
    name,
    (...args: never[]) => dockerActivity(() => activity(...args)),
  ]);
  // Each wrapper has the signature of its activity.
  return Object.fromEntries(each) as T;
}

/** Wraps activities in Docker, each for one agent and in a slot of its owner. */
export function dockerCalls<T extends AgentActivities>(limiter: FairLimiter, activities: T): T {
  const each = Object.entries(activities).map(([name, activity]) => [
    name,
    (agent: AgentRef, ...args: never[]) =>
      dockerActivity(() =>
        runForOwner(limiter, agent, () => withinCallBudget(() => activity(agent, ...args))),
      ),
  ]);
  // Each wrapper has the signature of its activity.
  return Object.fromEntries(each) as T;
}
