import { randomUUID } from 'node:crypto';

/** The schedule of a task in Temporal, and the beginning of the ids of its runs. */
export const taskScheduleId = (taskId: string): string => `scheduled-task-${taskId}`;

/** A run that a user requests; the schedule appends the time to the ids of the others. */
export const requestedRunId = (taskId: string): string =>
  `${taskScheduleId(taskId)}-run-${randomUUID()}`;

export const taskConversation = (taskId: string): string => `task-${taskId}`;
