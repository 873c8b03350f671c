import type { Client } from '@temporalio/client';
import type { runScheduledTask } from '../workflows/run-scheduled-task.js';
import type { AgentRef } from '../src/types/agent-ref.js';
import { PLATFORM_TASK_QUEUE } from '../workflows/ids.js';
import { attributesOf } from '../workflows/search-attributes.js';
import { temporalCall } from './temporal-call.js';

const CALL_TIMEOUT_MS = 10_000;

/** Milliseconds after which a run is terminated, more than its turn may take (`workflows/retries.ts`). */
const RUN_TIMEOUT_MS = 60 * 60_000;

/** An open run, by its row. */
export interface OpenTaskRun {
  readonly id: string;
  readonly taskId: string;
  readonly agent: Pick<AgentRef, 'agentId' | 'userId'>;
}

/** Returns the options that runs of a task have, whether a schedule or a user starts them. */
export const taskRunOptions = (taskId: string) => ({
  staticSummary: `Scheduled task ${taskId}`,
  runTimeoutMs: RUN_TIMEOUT_MS,
});

/** Starts the workflow of an open run; changes nothing while that runs. @throws UnavailableError */
export async function startTaskRun(client: Client, { agent, id, taskId }: OpenTaskRun) {
  const { runTimeoutMs, staticSummary } = taskRunOptions(taskId);
  await temporalCall(client, CALL_TIMEOUT_MS, () =>
    client.workflow.start<typeof runScheduledTask>('runScheduledTask', {
      workflowId: id,
      taskQueue: PLATFORM_TASK_QUEUE,
      args: [{ taskId }],
      workflowIdConflictPolicy: 'USE_EXISTING',
      workflowExecutionTimeout: runTimeoutMs,
      staticSummary,
      typedSearchAttributes: attributesOf(agent),
      priority: { fairnessKey: agent.userId },
    }),
  );
}
