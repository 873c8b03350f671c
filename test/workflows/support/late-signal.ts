import type { WorkflowExecutionStatusName } from '@temporalio/client';
import { WorkflowNotFoundError } from '@temporalio/common';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { wakeSignal } from '../../../workflows/chain-signer-messages.js';

/** What became of a signal that came when its workflow had ended. */
export interface LateSignal {
  readonly isRefused: boolean;
  /** Of the last run of its id. */
  readonly status: WorkflowExecutionStatusName;
  /** Whether there has been another run since. */
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

/** As it is to be. */
export const STAYS_ENDED: LateSignal = { isRefused: true, status: 'COMPLETED', isBack: false };
