import { poll } from '../../dev/poll.js';
import type { AgentRow, OperationRow } from '../../src/platform/database/models.js';
import { reconcileHostId, superviseAgentId } from '../../workflows/ids.js';
import { HOSTS } from './long-plan.js';
import type { Site } from './site.js';

/** Maximum history events of one supervisor run. */
const MAX_EVENTS = 1_000;

/** Maximum attempts of one supervisor decision; the first may run on a worker that is ending. */
const MAX_TASK_ATTEMPTS = 5;

const PASS_TIMEOUT_MS = 150_000;

/** Runs two reconciliation passes over each host, one after another. */
export async function twoPasses(site: Site): Promise<void> {
  await Promise.all(
    HOSTS.map(async (host) => {
      for (const _ of [1, 2]) await pass(site, host);
    }),
  );
}

async function pass({ temporal }: Site, host: string): Promise<void> {
  const schedule = temporal.schedule.getHandle(reconcileHostId(host));
  const begun = Date.now() - 1_000;
  await schedule.trigger();
  const isOver = async () => {
    const { info } = await schedule.describe();
    const since = info.recentActions.some(({ takenAt }) => takenAt.getTime() >= begun);
    return since && info.runningActions.length === 0 ? true : undefined;
  };
  const over = await poll(isOver, { timeoutMs: PASS_TIMEOUT_MS, everyMs: 1_000 });
  if (over === undefined) throw new Error(`A pass over host ${host} did not finish in time`);
}

/**
 * Returns problems of an agent's supervision: a stuck supervisor, an old observation, or too long a
 * history. An agent whose operation is in flight is not observed.
 *
 * @param intervalMs between two checks.
 */
export async function problemsOfSupervision(
  { temporal }: Site,
  { desired, id, observedAt, startedAt, status, watchdog }: AgentRow,
  operations: readonly OperationRow[],
  intervalMs: number,
): Promise<string[]> {
  const workflowId = superviseAgentId(id);
  const problems: string[] = [];
  const runs = temporal.workflow.list({ query: `WorkflowId = "${workflowId}"` });
  for await (const { historyLength, runId } of runs) {
    if (historyLength > MAX_EVENTS) problems.push(`its run ${runId} has ${historyLength} events`);
  }
  if (desired === 'deleted') return problems;
  const { historyLength, raw } = await temporal.workflow.getHandle(workflowId).describe();
  if (historyLength > MAX_EVENTS) problems.push(`its run has ${historyLength} events`);
  const attempt = raw.pendingWorkflowTask?.attempt ?? 0;
  if (attempt > MAX_TASK_ATTEMPTS) problems.push(`its supervisor is wedged (attempt ${attempt})`);
  const isBusy = operations.some(({ finishedAt }) => finishedAt === null);
  // An agent that never started needs an operator, like one in a crash loop.
  const isToRun = desired === 'running' && startedAt !== null && watchdog?.state !== 'crash_loop';
  const oldest = Date.now() - 3 * intervalMs;
  if (isToRun && !isBusy && (observedAt === null || observedAt.getTime() < oldest)) {
    const seen = observedAt ? `${Date.now() - observedAt.getTime()} ms ago` : 'never';
    problems.push(`it is ${status}, ${watchdog?.state}, and was seen ${seen}`);
  }
  return problems;
}
