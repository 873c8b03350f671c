import {
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  type Client,
  type ScheduleOptions,
  type ScheduleOverlapPolicy,
} from '@temporalio/client';
import { PLATFORM_TASK_QUEUE } from '../workflows/ids.js';
import type * as workflows from '../workflows/index.js';

/** All workflows by name, against which schedules are type-checked. */
type Workflows = typeof workflows;

/** A workflow with its arguments. */
type Start = {
  [Name in keyof Workflows]: {
    readonly workflow: Name;
    readonly args: Parameters<Workflows[Name]>;
  };
}[keyof Workflows];

interface Interval {
  readonly everyMs: number;
  /** Unix time from which the intervals are counted; 0 by default. */
  readonly fromMs?: number;
  /** Longest random delay of each run, so that the runs of many schedules do not coincide. */
  readonly jitterMs?: number;
}

/** A workflow that is started periodically. */
export type Schedule = Start & {
  readonly id: string;
  /** Workflow id of the runs, to which Temporal appends the time; the schedule's id by default. */
  readonly runId?: string;
  readonly overlap: ScheduleOverlapPolicy;
  /** Milliseconds after which a run is terminated, so that a stuck run does not block the next. */
  readonly runTimeoutMs?: number;
  /** Milliseconds for which a run is made up for when Temporal was unavailable; one minute by default. */
  readonly catchupWindowMs?: number;
} & (Interval | { readonly spec: ScheduleOptions['spec'] }) &
  Pick<ScheduleOptions['action'], 'staticSummary' | 'typedSearchAttributes'>;

const CATCHUP_WINDOW_MS = 60_000;

/**
 * Creates the schedule, or updates an existing one. Idempotent; a schedule that an operator has paused
 * stays paused.
 *
 * @returns true if the schedule is paused.
 */
export async function putSchedule(
  { schedule: schedules }: Client,
  schedule: Schedule,
): Promise<{ readonly paused: boolean }> {
  const { id, catchupWindowMs = CATCHUP_WINDOW_MS, overlap, workflow, args } = schedule;
  const content = {
    spec: 'spec' in schedule ? schedule.spec : specOf(schedule),
    action: {
      type: 'startWorkflow' as const,
      workflowType: workflow,
      workflowId: schedule.runId ?? id,
      taskQueue: PLATFORM_TASK_QUEUE,
      args,
      workflowExecutionTimeout: schedule.runTimeoutMs,
      staticSummary: schedule.staticSummary,
      typedSearchAttributes: schedule.typedSearchAttributes,
    },
    policies: { overlap, catchupWindow: catchupWindowMs },
  };
  try {
    await schedules.create({ scheduleId: id, ...content });
    return { paused: false };
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    let paused = false;
    await schedules.getHandle(id).update(({ state }) => {
      paused = state.paused;
      return { ...content, state: { paused, note: state.note } };
    });
    return { paused };
  }
}

/** Removes a schedule, if there is one. */
export async function removeSchedule({ schedule: schedules }: Client, id: string): Promise<void> {
  try {
    await schedules.getHandle(id).delete();
  } catch (error) {
    if (!(error instanceof ScheduleNotFoundError)) throw error;
  }
}

const specOf = ({ everyMs, fromMs = 0, jitterMs = 0 }: Interval): ScheduleOptions['spec'] => ({
  intervals: [{ every: everyMs, offset: fromMs % everyMs }],
  jitter: jitterMs,
});
