import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { TaskRunRecordActivities, TaskTurnActivities } from '../../../activities/tasks.js';
import { taskScheduleId } from '../../../src/agents/tasks/task-ids.js';
import { heartbeatsTaskQueue } from '../../../workflows/ids.js';
import type {
  RunScheduledTaskInput,
  runScheduledTask,
  TaskRunEnd,
} from '../../../workflows/run-scheduled-task.js';
import { runAlone } from './run-alone.js';

/** Host of the agents in these runs. */
export const HOST = 'task-host';

/** Activities of a run; without those of the host, its queue is not polled. */
export interface TaskRunActivities {
  readonly records: TaskRunRecordActivities;
  readonly host?: TaskTurnActivities;
}

/** Runs a task once, with workers of its own. */
export async function taskRun(
  environment: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundleWithSourceMap,
  { host, records }: TaskRunActivities,
  input: RunScheduledTaskInput,
): Promise<{ readonly workflowId: string; readonly result: TaskRunEnd }> {
  const workflowId = `${taskScheduleId(input.taskId)}-${randomUUID()}`;
  const result = await runAlone(
    environment,
    workflowBundle,
    {
      workflowId,
      activities: records,
      ...(host && { elsewhere: { taskQueue: heartbeatsTaskQueue(HOST), activities: host } }),
    },
    (workflows, started) =>
      workflows.execute<typeof runScheduledTask>('runScheduledTask', { ...started, args: [input] }),
  );
  return { workflowId, result };
}
