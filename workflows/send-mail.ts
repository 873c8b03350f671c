import { proxyActivities } from '@temporalio/workflow';
import type { MailActivities } from '../activities/mail.js';
import type { MailOutcome } from '../src/accounts/mail-delivery/mail-sender.js';
import { MAIL_TASK_QUEUE } from './ids.js';
import * as retries from './retries.js';

/** Sends one mail, for as long as its server says that it may take it later, a day at most. */
export async function sendMail(mailId: string): Promise<MailOutcome> {
  const mails = proxyActivities<MailActivities>({ ...retries.mail, taskQueue: MAIL_TASK_QUEUE });
  return mails.deliverMail(mailId);
}
