import type { Client } from '@temporalio/client';
import { wakeSignal } from '../workflows/chain-signer-messages.js';
import type { chainSigner } from '../workflows/chain-signer.js';
import { chainSignerId, PLATFORM_TASK_QUEUE } from '../workflows/ids.js';
import { temporalCall } from './temporal-call.js';

const CALL_TIMEOUT_MS = 10_000;

/** The runs that make payments: one for each signer on each chain. */
export class ChainSigners {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Tells the signer's run that there is something to be paid. @throws UnavailableError */
  async wake(signerId: string): Promise<void> {
    await temporalCall(this.#client, CALL_TIMEOUT_MS, () =>
      this.#client.workflow.signalWithStart<typeof chainSigner>('chainSigner', {
        workflowId: chainSignerId(signerId),
        taskQueue: PLATFORM_TASK_QUEUE,
        args: [signerId],
        signal: wakeSignal,
        workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      }),
    );
  }
}
