import type { WorkflowExecutionStatusName } from '@temporalio/client';
import { WorkflowNotFoundError } from '@temporalio/common';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { wakeSignal } from '../../../workflows/chain-signer-messages.js';

/** The outcome of a signal to a workflow that had already ended. */
export interface LateSignal {
  readonly isRefused: boolean;
  /** Status of the last run with the workflow's id. */
  readonly status: WorkflowExecutionStatusName;
  /** True if a new run was started after the signal. */
  readonly isBack: boolean;
}

/** Signals a workflow that has ended. */
export async function signalLate(
  { client }: Pick<TestWorkflowEnvironment, 'client'>,
  workflowId: string,
): Promise<LateSignal> {
  const handle = client.workflow.getHandle(workflowId);
  const { runId } = await handle.describe();
  const isRefused = await handle.signal(wakeSignal).then(
    () => false,
    (error: unknown) => {
      if (error instanceof WorkflowNotFoundError) return true;
      throw error;
    },
  );
  const last = await handle.describe();
  return { isRefused, status: last.status.name, isBack: last.runId !== runId };
}

/** The expected outcome. */
export const STAYS_ENDED: LateSignal = { isRefused: true, status: 'COMPLETED', isBack: false };
