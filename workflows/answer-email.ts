import { isCancellation, log, proxyActivities } from '@temporalio/workflow';
import type {
  EmailActivities,
  EmailRecordActivities,
  EmailTurnActivities,
} from '../activities/email.js';
import type { EmailStatus } from '../src/types/agent-emails.js';
import { failureReason } from './failure-reason.js';
import { EMAIL_TASK_QUEUE, heartbeatsTaskQueue } from './ids.js';
import { proxyRecords } from './records.js';
import * as retries from './retries.js';

/** `gone` if the mail was deleted with its agent. */
export type EmailEnd = EmailStatus | 'gone';

/** Answers an e-mail by a turn of its agent: reads the mail, sends the question once, and sends the answer. */
export async function answerEmail(id: string): Promise<EmailEnd> {
  const records = proxyRecords<EmailRecordActivities>();
  const { readEmail, sendEmailAnswer } = proxyActivities<EmailActivities>({
    ...retries.emailCall,
    taskQueue: EMAIL_TASK_QUEUE,
  });
  const step = await unlessFailed(readEmail(id));
  if (step && step.status !== 'asking' && step.status !== 'answering') return step.status;
  if (step?.status === 'asking') await ask(step.mail, records);
  // The row decides whether there is an answer: the report of the turn's end may have been lost.
  const status = step && (await unlessFailed(sendEmailAnswer(id)));
  return status ?? (await records.giveUpEmail(id)) ?? 'gone';
}

/** Returns undefined for a call that failed in all attempts. */
async function unlessFailed<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (isCancellation(error)) throw error;
    log.warn('a call of the e-mail provider failed', { reason: failureReason(error) });
    return undefined;
  }
}

type Mail = Parameters<EmailTurnActivities['askForEmail']>[0];

async function ask(
  mail: Mail,
  records: Pick<EmailRecordActivities, 'endLostEmailTurn'>,
): Promise<void> {
  const { agent } = mail;
  const { askForEmail } = proxyActivities<EmailTurnActivities>({
    ...retries.emailTurn,
    taskQueue: heartbeatsTaskQueue(agent.host),
    priority: { fairnessKey: agent.userId },
  });
  try {
    await askForEmail.executeWithOptions({ summary: `Agent ${agent.agentId}` }, [mail]);
  } catch (error) {
    if (isCancellation(error)) throw error;
    log.warn('the turn of an e-mail was not carried out', { reason: failureReason(error) });
    await records.endLostEmailTurn(mail);
  }
}
