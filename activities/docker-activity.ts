import { Context } from '@temporalio/activity';
import type { AgentRef } from '../src/types/agent-ref.js';
import { DockerRefusedError } from '../src/docker/containers/container-errors.js';
import { jittered } from '../src/lib/jitter.js';
import type { EndTurn, Turns } from '../src/lib/turns.js';
import { asApplicationFailure } from './failures.js';
import {
  budgetDetails,
  countAnew,
  countUp,
  LastingRefusalError,
  withinBudget,
} from './time-budget.js';

/** Heartbeats in the time after which Temporal takes an activity for lost. */
const PER_TIMEOUT = 5;

/** Temporal's own for what has none: what somebody waits for has a smaller one. */
const USUAL_PRIORITY = 3;

/** Of what Docker does in seconds: all attempts at one step together. */
const CALL_MS = 5 * 60_000;

/** The name of that budget. */
export const DOCKERS_CALL = 'What Docker was asked for';

/** The workflow whose steps are repairs. */
const REPAIR = 'repairAgent';

/** Of one step, one after the other: 5 minutes of pauses, as for what somebody waits for. */
const MAX_REFUSALS = 35;

/** Under which they are counted. */
export const REFUSALS = 'Refusals by Docker';

/** For an activity that has none; only its cancellations are heard by heartbeats. */
const USUAL_TIMEOUT_MS = 10_000;

/**
 * Heartbeats while the work runs, so that a killed worker is noticed within the activity's heartbeat
 * timeout. Each is a write of Temporal's, and how often they come follows from that timeout.
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

/**
 * What a volume that this activity makes says of its maker: the run that it is part of, and the
 * activity itself, which is the same in each of its attempts and no other's ever.
 */
export function makerHere(): string {
  const { activityId } = Context.current().info;
  return `${runHere()}/${activityId}`;
}

/** What all that is made in this run says of its maker begins with this. */
export function runHere(): string {
  const { workflowExecution } = Context.current().info;
  if (!workflowExecution) throw new TypeError('not part of a run');
  return workflowExecution.runId;
}

/** Whether this is a step of a repair. */
export const isOfRepair = (): boolean => Context.current().info.workflowType === REPAIR;

/** An activity in Docker: says that it is alive, and how it failed. */
export const dockerActivity = <T>(work: () => Promise<T>): Promise<T> =>
  asApplicationFailure(() => heartbeating(work));

/** Does the work for an agent in its owner's turn; what an operation asks for goes first. */
export function inTurn<T>(
  turns: Turns,
  { userId: owner }: AgentRef,
  work: (endTurn: EndTurn) => Promise<T>,
): Promise<T> {
  const { cancellationSignal: signal, info } = Context.current();
  const isUrgent = (info.priority?.priorityKey ?? USUAL_PRIORITY) < USUAL_PRIORITY;
  return turns.run({ owner, isUrgent, signal }, work);
}

/**
 * A Docker that hangs makes each attempt as long as it may be. So where the attempts are counted, which
 * is where somebody waits for the end, their time is bounded as well.
 */
export function withinCallBudget<T>(work: () => Promise<T>): Promise<T> {
  const { maximumAttempts = 0 } = Context.current().info.retryPolicy ?? {};
  const isEndless = maximumAttempts === 0 || maximumAttempts === Infinity;
  return isEndless ? withinRefusals(work) : withinBudget(DOCKERS_CALL, CALL_MS, work);
}

/**
 * What has no end waits for a Docker that is away for as long as that takes. One that is there and refuses
 * a step each time lets the step fail at some point: it would never end, and nobody be told.
 *
 * @throws LastingRefusalError
 */
export async function withinRefusals<T>(work: () => Promise<T>): Promise<T> {
  try {
    const done = await work();
    countAnew(REFUSALS);
    return done;
  } catch (error) {
    if (!(error instanceof DockerRefusedError)) throw error;
    throw countUp(REFUSALS) >= MAX_REFUSALS ? new LastingRefusalError(error) : error;
  }
}

type Activities = Readonly<Record<string, (...args: never[]) => Promise<unknown>>>;
type AgentActivities = Readonly<
  Record<string, (agent: AgentRef, ...args: never[]) => Promise<unknown>>
>;

/** Activities that all of them are in Docker. */
export function dockerActivities<T extends Activities>(activities: T): T {
  const each = Object.entries(activities).map(([name, activity]) => [
    name,
    (...args: never[]) => dockerActivity(() => activity(...args)),
  ]);
  // Each takes and answers what it did before.
  return Object.fromEntries(each) as T;
}

/** Activities in Docker that are for one agent each, and take turns. */
export function dockerCalls<T extends AgentActivities>(turns: Turns, activities: T): T {
  const each = Object.entries(activities).map(([name, activity]) => [
    name,
    (agent: AgentRef, ...args: never[]) =>
      dockerActivity(() =>
        inTurn(turns, agent, () => withinCallBudget(() => activity(agent, ...args))),
      ),
  ]);
  // As above.
  return Object.fromEntries(each) as T;
}
