import { WorkflowExecutionAlreadyStartedError, type Client } from '@temporalio/client';
import type { Priority } from '@temporalio/common';
import { wakeSignal } from '../workflows/chain-signer-messages.js';
import type { chainSigner } from '../workflows/chain-signer.js';
import { chainSignerId, PLATFORM_TASK_QUEUE } from '../workflows/ids.js';
import { temporalCall } from './temporal-call.js';

const CALL_TIMEOUT_MS = 10_000;

/**
 * Priority of the platform's own payments, for which everybody waits, over payments of one owner with
 * Temporal's default (3).
 */
const BEFORE_OTHERS: Priority = { priorityKey: 2 };

/** The runs that make payments: one for each signer on each chain. */
export class ChainSigners {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /**
   * Notifies the signer's run of a new payment.
   *
   * @param owner the wallet's owner; undefined for the platform's own wallet, which opens and settles
   *   sessions.
   * @throws UnavailableError
   */
  async wake(signerId: string, owner?: string): Promise<void> {
    await temporalCall(this.#client, CALL_TIMEOUT_MS, async () => {
      try {
        await this.#signal(signerId, owner);
      } catch (error) {
        if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
        // A concurrent call has started the run, which has not received this signal.
        await this.#signal(signerId, owner);
      }
    });
  }

  #signal(signerId: string, owner: string | undefined) {
    return this.#client.workflow.signalWithStart<typeof chainSigner>('chainSigner', {
      workflowId: chainSignerId(signerId),
      taskQueue: PLATFORM_TASK_QUEUE,
      args: [signerId],
      signal: wakeSignal,
      priority: owner === undefined ? BEFORE_OTHERS : { fairnessKey: owner },
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    });
  }
}
