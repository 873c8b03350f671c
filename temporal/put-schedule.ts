import {
  ScheduleAlreadyRunning,
  type Client,
  type ScheduleOptions,
  type ScheduleOverlapPolicy,
} from '@temporalio/client';
import { PLATFORM_TASK_QUEUE } from '../workflows/ids.js';
import type * as workflows from '../workflows/index.js';

/** Every workflow there is, by name: what a schedule starts is checked against it. */
type Workflows = typeof workflows;

/** A workflow with its arguments. */
type Start = {
  [Name in keyof Workflows]: {
    readonly workflow: Name;
    readonly args: Parameters<Workflows[Name]>;
  };
}[keyof Workflows];

/** A workflow that is started again and again. */
export type Schedule = Start & {
  readonly id: string;
  /** Of its runs, which have the time added to it; the schedule's own when left out. */
  readonly runId?: string;
  readonly everyMs: number;
  /** Unix time that the intervals are counted from, 0 when left out. */
  readonly fromMs?: number;
  /** Each run comes up to this much later, so that those of many do not come at once. */
  readonly jitterMs?: number;
  readonly overlap: ScheduleOverlapPolicy;
  /** After this a run is ended, so that one that cannot come to its end is not in the next one's way. */
  readonly runTimeoutMs?: number;
} & Pick<ScheduleOptions['action'], 'typedSearchAttributes'>;

/** A run that was missed for longer, because Temporal was out, waits for the next one. */
const CATCHUP_WINDOW_MS = 60_000;

/**
 * Makes the schedule, or makes the one that is there what it is to be. Again it changes nothing. One
 * that an operator has paused stays paused.
 *
 * @returns whether it is paused.
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
