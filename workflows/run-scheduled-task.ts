import { defineSearchAttributeKey } from '@temporalio/common';
import { isCancellation, log, proxyActivities, workflowInfo } from '@temporalio/workflow';
import type { TaskRunRecordActivities, TaskTurnActivities } from '../activities/tasks.js';
import { failureReason } from './failure-reason.js';
import { heartbeatsTaskQueue } from './ids.js';
import { proxyRecords } from './records.js';
import * as retries from './retries.js';

/** Set by Temporal for runs of a schedule. */
const SCHEDULED_FOR = defineSearchAttributeKey('TemporalScheduledStartTime', 'DATETIME');

export interface RunScheduledTaskInput {
  readonly taskId: string;
  /** Time of the setting that the schedule follows, in ISO 8601; undefined for a requested run. */
  readonly setAt?: string;
}

/** `nothing` if no task is to be sent; the row of the run, if there is one, has the reason. */
export type TaskRunEnd = 'answered' | 'skipped' | 'failed' | 'nothing';

/**
 * Runs a scheduled task: stores the run, under this workflow's id, and then sends the task to the agent once.
 */
export async function runScheduledTask({
  setAt,
  taskId,
}: RunScheduledTaskInput): Promise<TaskRunEnd> {
  const { startTime, typedSearchAttributes, workflowId: id } = workflowInfo();
  const scheduledFor = (typedSearchAttributes.get(SCHEDULED_FOR) ?? startTime).toISOString();
  const records = proxyRecords<TaskRunRecordActivities>();
  const run = await records.beginTaskRun({ id, taskId, setAt, scheduledFor });
  if (!run) return 'nothing';
  const { agent } = run;
  const { askForTask } = proxyActivities<TaskTurnActivities>({
    ...retries.ownerTurn,
    taskQueue: heartbeatsTaskQueue(agent.host),
    priority: { fairnessKey: agent.userId },
  });
  try {
    return await askForTask.executeWithOptions({ summary: `Agent ${agent.agentId}` }, [run]);
  } catch (error) {
    if (isCancellation(error)) throw error;
    log.warn('the turn of a task was not carried out', { reason: failureReason(error) });
    return records.endLostTaskRun(run);
  }
}
