export const TASK_STATUSES = ['active', 'paused', 'finished'] as const;

export type TaskStatus = (typeof TASK_STATUSES)[number];

export const TASK_RUN_STATUSES = ['running', 'succeeded', 'failed', 'skipped'] as const;

export type TaskRunStatus = (typeof TASK_RUN_STATUSES)[number];
