import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { MailActivities } from '../../../activities/mail.js';
import type { MailOutcome } from '../../../src/mail/mail-sender.js';
import { MAIL_TASK_QUEUE, sendMailId } from '../../../workflows/ids.js';
import type { sendMail } from '../../../workflows/send-mail.js';
import { IN_THIS_THREAD } from './in-this-thread.js';

/** The run of one mail, with workers of its own. */
export async function mailRun(
  environment: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundleWithSourceMap,
  activities: MailActivities,
  mailId: string = randomUUID(),
): Promise<{ readonly workflowId: string; readonly result: MailOutcome }> {
  const { client, nativeConnection: connection, namespace = 'default' } = environment;
  const workflowId = sendMailId(mailId);
  const common = { connection, namespace };
  const [runs, mails] = await Promise.all([
    Worker.create({
      ...common,
      ...IN_THIS_THREAD,
      taskQueue: workflowId,
      maxCachedWorkflows: 0,
      workflowBundle,
    }),
    Worker.create({ ...common, taskQueue: MAIL_TASK_QUEUE, activities }),
  ]);
  const result = await runs.runUntil(
    mails.runUntil(
      client.workflow.execute<typeof sendMail>('sendMail', {
        workflowId,
        taskQueue: workflowId,
        args: [mailId],
      }),
    ),
  );
  return { workflowId, result };
}
