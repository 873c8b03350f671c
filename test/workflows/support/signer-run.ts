import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { PaymentActivities } from '../../../activities/payments.js';
import { wakeSignal } from '../../../workflows/chain-signer-messages.js';
import type { chainSigner } from '../../../workflows/chain-signer.js';
import { chainSignerId, PAYMENTS_TASK_QUEUE } from '../../../workflows/ids.js';
import { IN_THIS_THREAD } from './in-this-thread.js';

/** The run of one signer, with workers of its own; begun as it is woken. */
export async function signerRun(
  environment: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundleWithSourceMap,
  payAll: (wake: (said?: string) => Promise<void>) => Promise<void>,
  signerId = `4217-${randomUUID()}`,
): Promise<{ readonly workflowId: string; readonly signerId: string }> {
  const { client, nativeConnection: connection, namespace = 'default' } = environment;
  const workflowId = chainSignerId(signerId);
  const wake = (said = '') => client.workflow.getHandle(workflowId).signal(wakeSignal.name, said);
  const activities = { payAll: () => payAll(wake) } satisfies Partial<PaymentActivities>;
  const common = { connection, namespace };
  const [runs, payments] = await Promise.all([
    Worker.create({
      ...common,
      ...IN_THIS_THREAD,
      taskQueue: workflowId,
      maxCachedWorkflows: 0,
      workflowBundle,
    }),
    Worker.create({ ...common, taskQueue: PAYMENTS_TASK_QUEUE, activities }),
  ]);
  await runs.runUntil(
    payments.runUntil(
      (async () => {
        const started = await client.workflow.signalWithStart<typeof chainSigner>('chainSigner', {
          workflowId,
          taskQueue: workflowId,
          args: [signerId],
          signal: wakeSignal,
        });
        await started.result();
      })(),
    ),
  );
  return { workflowId, signerId };
}
