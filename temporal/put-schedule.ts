import {
  ScheduleAlreadyRunning,
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

/** A workflow that is started periodically. */
export type Schedule = Start & {
  readonly id: string;
  /** Workflow id of the runs, to which Temporal appends the time; the schedule's id by default. */
  readonly runId?: string;
  readonly everyMs: number;
  /** Unix time from which the intervals are counted; 0 by default. */
  readonly fromMs?: number;
  /** Longest random delay of each run, so that the runs of many schedules do not coincide. */
  readonly jitterMs?: number;
  readonly overlap: ScheduleOverlapPolicy;
  /** Milliseconds after which a run is terminated, so that a stuck run does not block the next. */
  readonly runTimeoutMs?: number;
} & Pick<ScheduleOptions['action'], 'typedSearchAttributes'>;

/** A run missed for longer, because Temporal was unavailable, is skipped. */
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
  const { id, everyMs, fromMs = 0, jitterMs = 0, overlap, workflow, args } = schedule;
  const content = {
    spec: { intervals: [{ every: everyMs, offset: fromMs % everyMs }], jitter: jitterMs },
    action: {
      type: 'startWorkflow' as const,
      workflowType: workflow,
      workflowId: schedule.runId ?? id,
      taskQueue: PLATFORM_TASK_QUEUE,
      args,
      workflowExecutionTimeout: schedule.runTimeoutMs,
      typedSearchAttributes: schedule.typedSearchAttributes,
    },
    policies: { overlap, catchupWindow: CATCHUP_WINDOW_MS },
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
