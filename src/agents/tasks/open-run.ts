import { findEntitlement } from '../../accounts/accounts/entitlement.js';
import type { AdminRules } from '../../accounts/accounts/admin.js';
import type { Statements } from '../../platform/database/database.js';
import type { ScheduledTaskRow } from '../../platform/database/models.js';

/** Runs that each task keeps. */
export const KEPT_RUNS = 100;

/** A task as its run is opened; its row is locked. */
export type RunningTask = Pick<ScheduledTaskRow, 'id' | 'agentId' | 'userId'>;

interface NewRun {
  readonly id: string;
  readonly scheduledFor: Date;
  /** False for a run that has a workflow already. */
  readonly isRequested: boolean;
}

const PREVIOUS_IS_OPEN = 'The previous run is still open';

/** Reports whether a run of a locked task is open. */
export async function hasOpenRun(db: Statements, taskId: string): Promise<boolean> {
  const open = await db.query(
    `SELECT FROM scheduled_task_runs WHERE task_id = $taskId AND status = 'running'`,
    { taskId },
  );
  return open.length > 0;
}

/**
 * Stores a run of a locked task before the task is sent to its agent. Returns false for a run that is
 * skipped, because the previous one is open, the agent does not run, or its owner has no plan.
 */
export async function openRun(
  db: Statements,
  { agentId, id: taskId, userId }: RunningTask,
  run: NewRun,
  admins: AdminRules,
): Promise<boolean> {
  const reason = await skipReason(db, { agentId, taskId, userId }, admins);
  const status = reason === null ? 'running' : 'skipped';
  await db.query(
    `INSERT INTO scheduled_task_runs
       (id, task_id, agent_id, user_id, scheduled_for, started_at, finished_at, status, error, due_at)
     SELECT $id, $taskId, $agentId, $userId, $scheduledFor, t, CASE $status WHEN 'skipped' THEN t END,
            $status, $reason, CASE WHEN $isRequested THEN t ELSE t + interval '5 minutes' END
       FROM (SELECT date_trunc('milliseconds', now()) AS t) AS times`,
    { ...run, taskId, agentId, userId, status, reason },
  );
  await db.query(
    `UPDATE scheduled_tasks SET runs = runs + 1, last_status = $status,
            last_run = date_trunc('milliseconds', now())
      WHERE id = $taskId`,
    { taskId, status },
  );
  await db.query(
    `DELETE FROM scheduled_task_runs WHERE status <> 'running' AND id IN (
       SELECT id FROM scheduled_task_runs WHERE task_id = $taskId
        ORDER BY started_at DESC, id DESC OFFSET ${KEPT_RUNS})`,
    { taskId },
  );
  return reason === null;
}

async function skipReason(
  db: Statements,
  { agentId, taskId, userId }: Record<'agentId' | 'taskId' | 'userId', string>,
  admins: AdminRules,
): Promise<string | null> {
  if (await hasOpenRun(db, taskId)) return PREVIOUS_IS_OPEN;
  const running = await db.query(
    `SELECT FROM agents WHERE id = $agentId AND desired = 'running' AND status = 'active'`,
    { agentId },
  );
  if (running.length === 0) return 'The agent is not running';
  const entitlement = await findEntitlement(db, userId, admins);
  return entitlement ? null : "The agent's owner has no plan";
}
