import { proxyActivities } from '@temporalio/workflow';
import type { MailActivities } from '../activities/mail.js';
import type { MailOutcome } from '../src/accounts/mail-delivery/mail-sender.js';
import { MAIL_TASK_QUEUE } from './ids.js';
import * as retries from './retries.js';

/** Sends a mail; retries for a day at most while the mail server reports a temporary failure. */
export async function sendMail(mailId: string): Promise<MailOutcome> {
  const mails = proxyActivities<MailActivities>({ ...retries.mail, taskQueue: MAIL_TASK_QUEUE });
  return mails.deliverMail(mailId);
}
