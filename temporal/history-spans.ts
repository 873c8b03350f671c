import type { temporal } from '@temporalio/proto';
import { optionalTsToDate } from '@temporalio/common/lib/time.js';
import type { Span } from '../src/fleet/traces.js';
import { isObject, tryParseJson } from '../src/lib/json.js';

type HistoryEvent = temporal.api.history.v1.IHistoryEvent;
type Failure = temporal.api.failure.v1.IFailure;
type PendingActivity = temporal.api.workflow.v1.IPendingActivityInfo;
type EventId = HistoryEvent['eventId'];

/** Name of the markers in which the SDK records local activities. */
const LOCAL_ACTIVITY = 'core_local_activity';

const MAX_ERROR = 500;

/** A span of one history, in the order of its beginning event. */
export interface HistorySpan extends Omit<Span, 'parentId'> {
  /** The run of a child workflow; undefined for other spans. */
  readonly child: { readonly workflowId: string; readonly runId: string } | undefined;
}

type OpenSpan = { -readonly [Name in keyof HistorySpan]: HistorySpan[Name] } & {
  readonly activityId?: string;
};

/** The end of a history's run. */
export interface RunState {
  /** Null as long as the run is open. */
  readonly closedAt: Date | null;
  readonly pending: readonly PendingActivity[];
}

/** Returns the activities, timers and child workflows of a history, without any payload. */
export function spansOf(events: readonly HistoryEvent[], run: RunState): HistorySpan[] {
  const spans = new Map<string, OpenSpan>();
  for (const event of events) {
    const begun = beginningOf(event);
    if (begun) spans.set(begun.id, begun);
    else continueSpan(spans, event);
  }
  return [...spans.values()].map(({ activityId, ...span }) => {
    if (span.finishedAt !== null) return span;
    if (run.closedAt !== null) {
      return { ...span, status: 'cancelled' as const, finishedAt: run.closedAt };
    }
    const pending = run.pending.find((each) => each.activityId === activityId);
    if (activityId === undefined || !pending) return span;
    return {
      ...span,
      attempts: pending.attempt ?? span.attempts,
      error: errorOf(pending.lastFailure),
    };
  });
}

function beginningOf(event: HistoryEvent): OpenSpan | undefined {
  const {
    activityTaskScheduledEventAttributes: activity,
    startChildWorkflowExecutionInitiatedEventAttributes: child,
    timerStartedEventAttributes: timer,
    markerRecordedEventAttributes: marker,
  } = event;
  if (activity) {
    const { activityId } = activity;
    const span = openSpan(event, activity.activityType?.name);
    return activityId ? { ...span, activityId } : span;
  }
  if (child) return openSpan(event, child.workflowType?.name);
  if (timer) return openSpan(event, 'timer');
  return marker?.markerName === LOCAL_ACTIVITY ? localActivity(event, marker) : undefined;
}

const openSpan = (event: HistoryEvent, name: string | null | undefined): OpenSpan => ({
  id: String(event.eventId),
  name: name ?? '',
  startedAt: timeOf(event),
  finishedAt: null,
  status: 'running',
  attempts: 1,
  error: null,
  child: undefined,
});

/** Returns a local activity, which is recorded once, at its end. */
function localActivity(
  event: HistoryEvent,
  { details, failure }: temporal.api.history.v1.IMarkerRecordedEventAttributes,
): OpenSpan | undefined {
  const data = details?.data?.payloads?.[0]?.data;
  const recorded = data ? tryParseJson(Buffer.from(data).toString()) : undefined;
  if (!isObject(recorded)) return undefined;
  const { activity_type: name, attempt, original_schedule_time: scheduled } = recorded;
  const finishedAt = timeOf(event);
  const seconds = isObject(scheduled) ? Number(scheduled.seconds) : Number.NaN;
  const nanos = isObject(scheduled) ? Number(scheduled.nanos) : 0;
  // The worker's clock wrote the beginning, and the server's the end.
  const begunMs = Math.min(seconds * 1_000 + nanos / 1e6, finishedAt.getTime());
  return {
    ...openSpan(event, typeof name === 'string' ? name : ''),
    startedAt: Number.isFinite(begunMs) ? new Date(begunMs) : finishedAt,
    finishedAt,
    status: failure ? 'failed' : 'succeeded',
    attempts: typeof attempt === 'number' ? attempt : 1,
    error: errorOf(failure),
  };
}

/** Applies an event to the span that the event continues or ends. */
function continueSpan(spans: ReadonlyMap<string, OpenSpan>, event: HistoryEvent): void {
  const started = event.activityTaskStartedEventAttributes;
  const childStarted = event.childWorkflowExecutionStartedEventAttributes;
  if (started) {
    const span = spans.get(String(started.scheduledEventId));
    if (span) span.attempts = started.attempt ?? 1;
    return;
  }
  if (childStarted) {
    const span = spans.get(String(childStarted.initiatedEventId));
    const { runId, workflowId } = childStarted.workflowExecution ?? {};
    if (span && workflowId && runId) span.child = { workflowId, runId };
    return;
  }
  const end = endOf(event);
  const span = end && spans.get(String(end.of));
  if (!span) return;
  span.finishedAt = timeOf(event);
  span.status = end.status;
  span.error = end.error ?? null;
}

interface End {
  readonly of: EventId;
  readonly status: Span['status'];
  readonly error?: string | null;
}

function endOf(event: HistoryEvent): End | undefined {
  return endOfActivity(event) ?? endOfTimer(event) ?? endOfChild(event);
}

function endOfActivity(event: HistoryEvent): End | undefined {
  const completed = event.activityTaskCompletedEventAttributes;
  if (completed) return { of: completed.scheduledEventId, status: 'succeeded' };
  const failed =
    event.activityTaskFailedEventAttributes ?? event.activityTaskTimedOutEventAttributes;
  if (failed) {
    return { of: failed.scheduledEventId, status: 'failed', error: errorOf(failed.failure) };
  }
  const cancelled = event.activityTaskCanceledEventAttributes;
  return cancelled ? { of: cancelled.scheduledEventId, status: 'cancelled' } : undefined;
}

function endOfTimer(event: HistoryEvent): End | undefined {
  const fired = event.timerFiredEventAttributes;
  if (fired) return { of: fired.startedEventId, status: 'succeeded' };
  const cancelled = event.timerCanceledEventAttributes;
  return cancelled ? { of: cancelled.startedEventId, status: 'cancelled' } : undefined;
}

function endOfChild(event: HistoryEvent): End | undefined {
  const completed = event.childWorkflowExecutionCompletedEventAttributes;
  if (completed) return { of: completed.initiatedEventId, status: 'succeeded' };
  const failed = event.childWorkflowExecutionFailedEventAttributes;
  if (failed) {
    return { of: failed.initiatedEventId, status: 'failed', error: errorOf(failed.failure) };
  }
  const unstarted = event.startChildWorkflowExecutionFailedEventAttributes;
  if (unstarted) {
    const error = 'Another run of the workflow was in progress';
    return { of: unstarted.initiatedEventId, status: 'failed', error };
  }
  const late = event.childWorkflowExecutionTimedOutEventAttributes;
  if (late) return { of: late.initiatedEventId, status: 'failed', error: IN_TIME };
  const ended =
    event.childWorkflowExecutionCanceledEventAttributes ??
    event.childWorkflowExecutionTerminatedEventAttributes;
  return ended ? { of: ended.initiatedEventId, status: 'cancelled' } : undefined;
}

const IN_TIME = 'It did not finish in time';

/**
 * Returns the message of the failure that the step itself reported, which users also see in operations. The
 * cause of that failure can contain messages of libraries, which only operators may see.
 */
function errorOf(failure: Failure | null | undefined): string | null {
  if (!failure) return null;
  let innermost = failure;
  while (isPassedOn(innermost) && innermost.cause) innermost = innermost.cause;
  if (innermost.timeoutFailureInfo) return IN_TIME;
  return (innermost.message ?? '').slice(0, MAX_ERROR);
}

/** Reports whether a failure only passes on that of an activity or a child workflow. */
const isPassedOn = (failure: Failure): boolean =>
  Boolean(failure.activityFailureInfo ?? failure.childWorkflowExecutionFailureInfo);

const timeOf = ({ eventTime }: HistoryEvent): Date => optionalTsToDate(eventTime) ?? new Date(0);
