import type { Client } from '@temporalio/client';
import { Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';

const HISTORY_TIMEOUT_MS = 60_000;

export interface Run {
  readonly workflowId: string;
  readonly runId: string;
}

/**
 * Replays these runs, their child runs and the runs that they continued as.
 *
 * @throws when a run deviates from its history.
 */
export async function replayAll(
  client: Client,
  workflowBundle: WorkflowBundleWithSourceMap,
  runs: readonly Run[],
): Promise<void> {
  const results = Worker.runReplayHistories({ workflowBundle }, histories(client, runs));
  const failures: Error[] = [];
  for await (const { workflowId, error } of results) {
    if (error) failures.push(new Error(`${workflowId}: ${error.message}`, { cause: error }));
  }
  if (failures.length > 0) throw new AggregateError(failures, 'Histories cannot be replayed');
}

async function* histories(client: Client, runs: readonly Run[]) {
  const waiting = [...runs];
  for (let run = waiting.pop(); run; run = waiting.pop()) {
    const { workflowId } = run;
    // A time-skipping server may hang forever and would block the test until its timeout.
    const history = await client.withDeadline(Date.now() + HISTORY_TIMEOUT_MS, () =>
      client.workflow.getHandle(workflowId, run.runId).fetchHistory(),
    );
    for (const event of history.events ?? []) {
      const child = event.childWorkflowExecutionStartedEventAttributes?.workflowExecution;
      if (child) waiting.push({ workflowId: child.workflowId ?? '', runId: child.runId ?? '' });
      const next = event.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId;
      if (next) waiting.push({ workflowId, runId: next });
    }
    yield { workflowId, history };
  }
}
