import * as z from 'zod';
import { FREQUENCY_FORMAT } from '../../src/agents/heartbeat/frequency.js';
import { SHOWN_ANSWER, type PastRun } from '../../src/agents/tasks/past-runs.js';
import { nextTime, timesOf } from '../../src/agents/tasks/task-schedule.js';
import { visibleName } from '../../src/lib/visible-name.js';
import type { ScheduledTaskRow } from '../../src/platform/database/models.js';
import {
  TASK_RUN_STATUSES,
  TASK_STATUSES,
  type TaskStatus,
} from '../../src/types/scheduled-tasks.js';

export const taskFields = {
  name: visibleName(100),
  message: z.string().min(1).max(16_000).describe('Text that is sent to the agent'),
  schedule: z
    .string()
    .min(1)
    .max(200)
    .describe(
      `Cron expression of five fields, interval (${FREQUENCY_FORMAT}), or ISO 8601 time (once); at least 5 minutes apart`,
    ),
  timezone: z.string().min(1).max(64).optional().describe('IANA name; `UTC` by default'),
  enabled: z.boolean().optional(),
};

const time = z.iso.datetime().nullable();

export const taskItem = z
  .strictObject({
    id: z.string(),
    agentId: z.string(),
    name: z.string(),
    message: z.string(),
    schedule: z.string(),
    timezone: z.string(),
    enabled: z.boolean(),
    status: z.enum(TASK_STATUSES),
    reason: z.string().nullable().describe('Why the platform has paused or finished the task'),
    nextRun: time,
    lastRun: time,
    lastStatus: z.enum(TASK_RUN_STATUSES).nullable(),
    runs: z.int().describe('Number of runs so far'),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
  })
  .meta({ id: 'ScheduledTask' });

export const taskRunItem = z
  .strictObject({
    id: z.string(),
    scheduledFor: z.iso.datetime(),
    startedAt: z.iso.datetime(),
    finishedAt: time,
    status: z.enum(TASK_RUN_STATUSES),
    error: z.string().nullable(),
    answer: z
      .string()
      .nullable()
      .describe(`The first ${SHOWN_ANSWER} characters, while the conversation has the answer`),
  })
  .meta({ id: 'ScheduledTaskRun' });

export function presentTask(task: ScheduledTaskRow, now = Date.now()): z.infer<typeof taskItem> {
  const { agentId, enabled, id, lastStatus, message, name, reason, runs, schedule, timezone } =
    task;
  const status = statusOf(task);
  const next = status === 'active' ? nextTime(timesOf(task), task, now) : null;
  return {
    ...{ id, agentId, name, message, schedule, timezone, enabled, status, reason },
    nextRun: next === null ? null : new Date(next).toISOString(),
    lastRun: task.lastRun?.toISOString() ?? null,
    ...{ lastStatus, runs },
    createdAt: task.createdAt.toISOString(),
    updatedAt: task.updatedAt.toISOString(),
  };
}

export const presentTaskRun = (run: PastRun): z.infer<typeof taskRunItem> => ({
  ...run,
  scheduledFor: run.scheduledFor.toISOString(),
  startedAt: run.startedAt.toISOString(),
  finishedAt: run.finishedAt?.toISOString() ?? null,
});

function statusOf({ enabled, finishedAt }: ScheduledTaskRow): TaskStatus {
  if (finishedAt !== null) return 'finished';
  return enabled ? 'active' : 'paused';
}
