import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { BillingActivities } from '../../../activities/billing.js';
import type { BillingReconciled } from '../../../src/billing/billing-reconciliation.js';
import type { reconcileBilling } from '../../../workflows/reconcile-billing.js';
import { runAlone } from './run-alone.js';

/** Runs one pass over the payment processor with a worker of its own. */
export async function billingPass(
  environment: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundleWithSourceMap,
  activities: Pick<BillingActivities, 'reconcileBilling'>,
): Promise<{ readonly workflowId: string; readonly result: BillingReconciled }> {
  const workflowId = `reconcile-billing-${randomUUID()}`;
  const alone = { workflowId, activities };
  const result = await runAlone(environment, workflowBundle, alone, (workflows, started) =>
    workflows.execute<typeof reconcileBilling>('reconcileBilling', started),
  );
  return { workflowId, result };
}
