import { literal, Op } from 'sequelize';
import type { TaskRunStatus } from '../../../types/scheduled-tasks.js';
import { ownedThrough } from '../schema/policies.js';
import {
  boolean,
  index,
  integer,
  key,
  nullable,
  table,
  text,
  timestamp,
  unique,
  withDefault,
} from '../schema/table.js';

/** Tasks that users schedule for their agents. */
export const scheduledTasks = table(
  'scheduled_tasks',
  {
    id: key(text()),
    userId: text(),
    agentId: text(),
    name: text(),
    message: text(),
    schedule: text(),
    timezone: text(),
    /** The time of a schedule with one run. */
    onceAt: nullable(timestamp()),
    enabled: boolean(),
    /** The reason for which the platform has paused or finished the task. */
    reason: nullable(text()),
    /** Failed runs in a row. */
    failures: withDefault(integer(), 0),
    finishedAt: nullable(timestamp()),
    /** The last change that the schedule in Temporal has to follow; intervals count from it. */
    setAt: timestamp(),
    /** True if Temporal's schedule is known to match this row. */
    scheduled: withDefault(boolean(), false),
    /** The row stays until its schedule is removed. */
    removedAt: nullable(timestamp()),
    runs: withDefault(integer(), 0),
    lastRun: nullable(timestamp()),
    lastStatus: nullable(text<TaskRunStatus>()),
    createdAt: timestamp(),
    updatedAt: timestamp(),
  },
  [
    unique('scheduled_tasks_id_user_key', ['id', 'user_id']),
    index('scheduled_tasks_user', ['user_id', 'created_at', 'id']),
    index('scheduled_tasks_agent', ['agent_id', 'created_at', 'id']),
    index('scheduled_tasks_unscheduled', ['set_at'], { scheduled: false }),
    index('scheduled_tasks_once', ['once_at'], {
      once_at: { [Op.ne]: null },
      finished_at: null,
    }),
  ],
  ownedThrough('user_id'),
);

/** Runs of scheduled tasks; their texts are messages of the agents. */
export const scheduledTaskRuns = table(
  'scheduled_task_runs',
  {
    /** The id of the run's workflow as well. */
    id: key(text()),
    taskId: text(),
    agentId: text(),
    userId: text(),
    scheduledFor: timestamp(),
    startedAt: timestamp(),
    finishedAt: nullable(timestamp()),
    status: text<TaskRunStatus>(),
    error: nullable(text()),
    dueAt: withDefault(timestamp(), literal('now()')),
  },
  [
    unique('scheduled_task_runs_open_key', ['task_id'], { status: 'running' }),
    index('scheduled_task_runs_task', ['task_id', 'started_at', 'id']),
    index('scheduled_task_runs_agent', ['agent_id']),
    index('scheduled_task_runs_user', ['user_id', 'id']),
    index('scheduled_task_runs_user_started', ['user_id', 'started_at', 'id']),
    index('scheduled_task_runs_due', ['due_at'], { status: 'running' }),
    index('scheduled_task_runs_finished', ['finished_at']),
  ],
  ownedThrough('user_id'),
);
