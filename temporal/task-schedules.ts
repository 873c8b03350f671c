import { ScheduleOverlapPolicy, type Client, type ScheduleOptions } from '@temporalio/client';
import type { ScheduledTaskRow } from '../src/platform/database/models.js';
import { taskScheduleId } from '../src/agents/tasks/task-ids.js';
import { timesOf } from '../src/agents/tasks/task-schedule.js';
import { attributesOf } from '../workflows/search-attributes.js';
import type { Schedule } from './put-schedule.js';
import { applySchedule, triggerSchedule } from './row-schedules.js';
import { taskRunOptions } from './task-runs.js';
import { temporalCall } from './temporal-call.js';

/** Milliseconds for a list of all schedules. */
const LIST_TIMEOUT_MS = 60_000;

const PAGE = 200;

/** Runs missed for longer, because Temporal was unavailable, are skipped. */
const CATCHUP_WINDOW_MS = 10 * 60_000;

const PREFIX = taskScheduleId('');

/** The fields of a task that its schedule depends on. */
export type TaskSetting = Pick<
  ScheduledTaskRow,
  | 'id'
  | 'agentId'
  | 'userId'
  | 'schedule'
  | 'timezone'
  | 'enabled'
  | 'onceAt'
  | 'finishedAt'
  | 'removedAt'
  | 'setAt'
>;

/** Temporal's schedules of tasks. */
export interface TaskScheduler {
  /** Creates, updates or removes a task's schedule. Idempotent. @throws UnavailableError; ScheduleRefusedError */
  apply(task: TaskSetting): Promise<void>;
  /** Removes the schedule of a task that no longer exists. @throws UnavailableError */
  remove(taskId: string): Promise<void>;
  /** Returns the ids of the tasks that have schedules; the newest ones may be missing. @throws UnavailableError */
  taskIds(): Promise<readonly string[]>;
}

export const isActive = ({ enabled, finishedAt, removedAt }: TaskSetting): boolean =>
  enabled && finishedAt === null && removedAt === null;

/** One schedule for each active task. */
export class TaskSchedules implements TaskScheduler {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  async apply(task: TaskSetting): Promise<void> {
    const schedule = isActive(task) ? scheduleOf(task) : undefined;
    const id = taskScheduleId(task.id);
    await applySchedule(this.#client, id, schedule);
    // A task with one run begins no second one, so a trigger may be repeated.
    if (schedule && isMissed(task, Date.now())) await triggerSchedule(this.#client, id);
  }

  async remove(taskId: string): Promise<void> {
    await applySchedule(this.#client, taskScheduleId(taskId), undefined);
  }

  async taskIds(): Promise<readonly string[]> {
    return temporalCall(this.#client, LIST_TIMEOUT_MS, async () => {
      const ids: string[] = [];
      for await (const { scheduleId } of this.#client.schedule.list({ pageSize: PAGE })) {
        if (scheduleId.startsWith(PREFIX)) ids.push(scheduleId.slice(PREFIX.length));
      }
      return ids;
    });
  }
}

/** Reports whether the one time of a task has passed, but no longer ago than runs are made up for. */
function isMissed({ onceAt }: TaskSetting, now: number): boolean {
  if (onceAt === null) return false;
  // Temporal's times are whole seconds.
  const at = Math.floor(onceAt.getTime() / 1_000) * 1_000;
  return at <= now && now - at < CATCHUP_WINDOW_MS;
}

function scheduleOf(task: TaskSetting): Schedule {
  return {
    id: taskScheduleId(task.id),
    workflow: 'runScheduledTask',
    args: [{ taskId: task.id, setAt: task.setAt.toISOString() }],
    spec: specOf(task),
    // With several missed runs, the first one is still running when the others are due.
    overlap: ScheduleOverlapPolicy.SKIP,
    catchupWindowMs: CATCHUP_WINDOW_MS,
    ...taskRunOptions(task.id),
    typedSearchAttributes: attributesOf(task),
  };
}

function specOf(task: TaskSetting): ScheduleOptions['spec'] {
  const { setAt, timezone } = task;
  const times = timesOf(task);
  switch (times.kind) {
    case 'cron':
      return { cronExpressions: [...times.expressions], timezone };
    case 'interval': {
      const { everyMs: every } = times;
      return {
        intervals: [{ every, offset: (Math.floor(setAt.getTime() / 1_000) * 1_000) % every }],
      };
    }
    case 'once': {
      const at = new Date(times.at);
      const calendar = {
        year: at.getUTCFullYear(),
        month: MONTHS[at.getUTCMonth()],
        dayOfMonth: at.getUTCDate(),
        hour: at.getUTCHours(),
        minute: at.getUTCMinutes(),
        second: at.getUTCSeconds(),
      };
      return { calendars: [calendar], timezone: 'UTC' };
    }
  }
}

const MONTHS = [
  'JANUARY',
  'FEBRUARY',
  'MARCH',
  'APRIL',
  'MAY',
  'JUNE',
  'JULY',
  'AUGUST',
  'SEPTEMBER',
  'OCTOBER',
  'NOVEMBER',
  'DECEMBER',
] as const;
