import { WorkflowExecutionAlreadyStartedError, type Client } from '@temporalio/client';
import { PLATFORM_TASK_QUEUE, sendMailId } from '../workflows/ids.js';
import type { sendMail } from '../workflows/send-mail.js';
import { temporalCall } from './temporal-call.js';

const CALL_TIMEOUT_MS = 10_000;

/** The runs that send mails: one for each. */
export class MailRuns {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /**
   * Starts the mail's run. Again it changes nothing.
   *
   * @returns false when it has had its run, and that has ended.
   * @throws UnavailableError
   */
  async start(mailId: string): Promise<boolean> {
    return temporalCall(this.#client, CALL_TIMEOUT_MS, async () => {
      try {
        await this.#client.workflow.start<typeof sendMail>('sendMail', {
          workflowId: sendMailId(mailId),
          taskQueue: PLATFORM_TASK_QUEUE,
          args: [mailId],
          workflowIdConflictPolicy: 'USE_EXISTING',
          workflowIdReusePolicy: 'REJECT_DUPLICATE',
        });
        return true;
      } catch (error) {
        if (error instanceof WorkflowExecutionAlreadyStartedError) return false;
        throw error;
      }
    });
  }
}
