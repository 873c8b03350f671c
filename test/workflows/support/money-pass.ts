import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { MoneyActivities } from '../../../activities/money.js';
import type { checkLedger } from '../../../workflows/check-ledger.js';
import type { expireHolds } from '../../../workflows/expire-holds.js';
import { runAlone } from './run-alone.js';

interface Passes {
  readonly expireHolds: typeof expireHolds;
  readonly checkLedger: typeof checkLedger;
}

/** Runs one money pass with a worker of its own. */
export async function moneyPass<Name extends keyof Passes>(
  environment: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundleWithSourceMap,
  workflow: Name,
  activities: MoneyActivities,
): Promise<{ readonly workflowId: string; readonly result: Awaited<ReturnType<Passes[Name]>> }> {
  const workflowId = `${workflow}-${randomUUID()}`;
  const alone = { workflowId, activities };
  const result = await runAlone(environment, workflowBundle, alone, (workflows, started) =>
    workflows.execute(workflow, started),
  );
  return { workflowId, result: result as Awaited<ReturnType<Passes[Name]>> }; // the result type of this workflow
}
