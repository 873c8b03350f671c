import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type {
  EmailActivities,
  EmailRecordActivities,
  EmailTurnActivities,
} from '../../../activities/email.js';
import type { answerEmail, EmailEnd } from '../../../workflows/answer-email.js';
import { answerEmailId, EMAIL_TASK_QUEUE, heartbeatsTaskQueue } from '../../../workflows/ids.js';
import { runAlone } from './run-alone.js';
import { HOST } from './task-run.js';

/** Activities of a run; without those of the host, its queue is not polled. */
export interface EmailRunActivities {
  readonly records: EmailRecordActivities;
  readonly calls: EmailActivities;
  readonly host?: EmailTurnActivities;
}

/** Answers a mail once, with workers of its own. */
export async function emailRun(
  environment: TestWorkflowEnvironment,
  bundle: WorkflowBundleWithSourceMap,
  { calls, host, records }: EmailRunActivities,
  id: string = randomUUID(),
): Promise<{ readonly workflowId: string; readonly result: EmailEnd }> {
  const { nativeConnection: connection, namespace = 'default' } = environment;
  const workflowId = answerEmailId(id);
  const run = () =>
    runAlone(
      environment,
      bundle,
      {
        workflowId,
        activities: records,
        elsewhere: { taskQueue: EMAIL_TASK_QUEUE, activities: calls },
      },
      (workflows, started) =>
        workflows.execute<typeof answerEmail>('answerEmail', { ...started, args: [id] }),
    );
  if (!host) return { workflowId, result: await run() };
  const taskQueue = heartbeatsTaskQueue(HOST);
  const turns = await Worker.create({ connection, namespace, taskQueue, activities: host });
  return { workflowId, result: await turns.runUntil(run) };
}
