import type { Client } from '@temporalio/client';
import type { applySecurityEvent } from '../workflows/apply-security-event.js';
import { applySecurityEventId, PLATFORM_TASK_QUEUE } from '../workflows/ids.js';
import { temporalCall } from './temporal-call.js';

const CALL_TIMEOUT_MS = 10_000;

/** The runs that apply security events: one at a time for each token. */
export class SecurityEventRuns {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Starts the run of a token's row. While there is one, this changes nothing. @throws UnavailableError */
  async start(id: string): Promise<void> {
    await temporalCall(this.#client, CALL_TIMEOUT_MS, async () => {
      await this.#client.workflow.start<typeof applySecurityEvent>('applySecurityEvent', {
        workflowId: applySecurityEventId(id),
        taskQueue: PLATFORM_TASK_QUEUE,
        args: [id],
        workflowIdConflictPolicy: 'USE_EXISTING',
      });
    });
  }
}
