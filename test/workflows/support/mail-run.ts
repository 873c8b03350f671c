import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { MailActivities } from '../../../activities/mail.js';
import type { MailOutcome } from '../../../src/accounts/mail-delivery/mail-sender.js';
import { MAIL_TASK_QUEUE, sendMailId } from '../../../workflows/ids.js';
import type { sendMail } from '../../../workflows/send-mail.js';
import { runAlone } from './run-alone.js';

/** Runs one mail with workers of its own. */
export async function mailRun(
  environment: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundleWithSourceMap,
  activities: MailActivities,
  mailId: string = randomUUID(),
): Promise<{ readonly workflowId: string; readonly result: MailOutcome }> {
  const workflowId = sendMailId(mailId);
  const alone = { workflowId, elsewhere: { taskQueue: MAIL_TASK_QUEUE, activities } };
  const result = await runAlone(environment, workflowBundle, alone, (workflows, started) =>
    workflows.execute<typeof sendMail>('sendMail', { ...started, args: [mailId] }),
  );
  return { workflowId, result };
}
