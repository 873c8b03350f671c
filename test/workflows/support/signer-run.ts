import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { PaymentActivities } from '../../../activities/payments.js';
import { wakeSignal } from '../../../workflows/chain-signer-messages.js';
import type { chainSigner } from '../../../workflows/chain-signer.js';
import { chainSignerId, PAYMENTS_TASK_QUEUE } from '../../../workflows/ids.js';
import { runAlone } from './run-alone.js';

/** Runs one signer with workers of its own, started by its wake-up signal. */
export async function signerRun(
  environment: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundleWithSourceMap,
  payAll: (wake: (said?: string) => Promise<void>) => Promise<void>,
  signerId = `4217-${randomUUID()}`,
): Promise<{ readonly workflowId: string; readonly signerId: string }> {
  const workflowId = chainSignerId(signerId);
  const { workflow: all } = environment.client;
  const wake = (said = '') => all.getHandle(workflowId).signal(wakeSignal.name, said);
  const activities = { payAll: () => payAll(wake) } satisfies Partial<PaymentActivities>;
  const alone = { workflowId, elsewhere: { taskQueue: PAYMENTS_TASK_QUEUE, activities } };
  await runAlone(environment, workflowBundle, alone, async (workflows, started) => {
    const woken = await workflows.signalWithStart<typeof chainSigner>('chainSigner', {
      ...started,
      args: [signerId],
      signal: wakeSignal,
    });
    await woken.result();
  });
  return { workflowId, signerId };
}
