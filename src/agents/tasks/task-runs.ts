import type { AdminRules } from '../../accounts/accounts/admin.js';
import type { Database, Statements } from '../../platform/database/database.js';
import type { ScheduledTaskRow } from '../../platform/database/models.js';
import type { AgentRef } from '../../types/agent-ref.js';
import type { TaskRunStatus } from '../../types/scheduled-tasks.js';
import type { OwnerQuestion, TurnEnd } from '../chat/owner-turns.js';
import { openRun } from './open-run.js';
import { taskConversation } from './task-ids.js';

/** Number of failed runs in a row after which a task is paused. */
const MAX_FAILURES = 10;

/** A run as its workflow begins. */
export interface BegunRun {
  /** The run's id, which is its workflow's. */
  readonly id: string;
  readonly taskId: string;
  /** The setting that the schedule follows, in ISO 8601; undefined for a run that a user requested. */
  readonly setAt: string | undefined;
  /** In ISO 8601. */
  readonly scheduledFor: string;
}

/** A run whose task is to be sent to its agent. */
export interface TaskRunRef {
  readonly id: string;
  readonly agent: AgentRef;
}

type LockedTask = Pick<
  ScheduledTaskRow,
  'id' | 'agentId' | 'userId' | 'enabled' | 'finishedAt' | 'onceAt' | 'setAt'
> &
  Pick<AgentRef, 'host'>;

const STATUS_OF: Readonly<Record<TurnEnd['kind'], TaskRunStatus>> = {
  answered: 'succeeded',
  failed: 'failed',
  skipped: 'skipped',
};

/** The runs of scheduled tasks, as rows. Every method is idempotent. */
export class TaskRuns {
  readonly #database: Database;
  readonly #admins: AdminRules;

  constructor(database: Database, admins: AdminRules) {
    this.#database = database;
    this.#admins = admins;
  }

  /**
   * Stores a run before its task is sent to the agent; undefined if there is none to send. A schedule of
   * another setting starts no run; a worker then updates the schedule.
   */
  async begin({ id, scheduledFor, setAt, taskId }: BegunRun): Promise<TaskRunRef | undefined> {
    return this.#database.asPlatform().transaction(async (db) => {
      const [task] = await db.query<LockedTask>(
        `SELECT t.id, t.agent_id AS "agentId", t.user_id AS "userId", t.enabled, t.set_at AS "setAt",
                t.finished_at AS "finishedAt", t.once_at AS "onceAt", a.host
           FROM scheduled_tasks t JOIN agents a ON a.id = t.agent_id
          WHERE t.id = $taskId AND t.removed_at IS NULL FOR UPDATE OF t`,
        { taskId },
      );
      if (!task) return undefined;
      const { agentId, host, userId } = task;
      const ref = { id, agent: { agentId, userId, host } };
      const [run] = await db.query<{ status: TaskRunStatus }>(
        'SELECT status FROM scheduled_task_runs WHERE id = $id',
        { id },
      );
      if (run) return run.status === 'running' ? ref : undefined;
      // The row of a requested run exists until it is removed.
      if (setAt === undefined) return undefined;
      const isCurrent = task.setAt.toISOString() === setAt;
      if (!isCurrent || !task.enabled || task.finishedAt !== null) {
        await markChanged(db, taskId);
        return undefined;
      }
      const isOpen = await openRun(
        db,
        task,
        { id, scheduledFor: new Date(scheduledFor), isRequested: false },
        this.#admins,
      );
      if (task.onceAt !== null) await finishTask(db, taskId, null);
      return isOpen ? ref : undefined;
    });
  }

  /** Returns the text of a run; undefined if the run is over. */
  async question({ id }: TaskRunRef): Promise<OwnerQuestion | undefined> {
    const [found] = await this.#database.asPlatform().query<{ taskId: string; message: string }>(
      `SELECT t.id AS "taskId", t.message
           FROM scheduled_task_runs r JOIN scheduled_tasks t ON t.id = r.task_id
          WHERE r.id = $id AND r.status = 'running' AND t.removed_at IS NULL`,
      { id },
    );
    return found && { conversation: taskConversation(found.taskId), text: found.message };
  }

  /** Ends a run, and pauses its task after ten failures in a row. The answer is a message already. */
  async finish({ id }: TaskRunRef, end: TurnEnd): Promise<void> {
    const status = STATUS_OF[end.kind];
    const error = end.kind === 'answered' ? null : end.reason;
    await this.#database.asPlatform().transaction(async (db) => {
      // Locks the task first, as all do that change both.
      const [task] = await db.query<{ id: string }>(
        `SELECT id FROM scheduled_tasks
          WHERE id = (SELECT task_id FROM scheduled_task_runs WHERE id = $id) FOR UPDATE`,
        { id },
      );
      const ended = await db.query(
        `UPDATE scheduled_task_runs
            SET status = $status, error = $error, finished_at = date_trunc('milliseconds', now())
          WHERE id = $id AND status = 'running' RETURNING id`,
        { id, status, error },
      );
      if (!task || ended.length === 0) return;
      const [counted] = await db.query<{ failures: number }>(
        `UPDATE scheduled_tasks
            SET last_status = $status,
                failures = CASE $status WHEN 'failed' THEN failures + 1 WHEN 'succeeded' THEN 0
                                        ELSE failures END
          WHERE id = $taskId RETURNING failures`,
        { taskId: task.id, status },
      );
      if (status === 'failed' && (counted?.failures ?? 0) >= MAX_FAILURES) {
        await pauseTask(db, task.id, `Ten runs failed in a row. The last one: ${error}`);
      }
    });
  }

  /** Finishes tasks with one run whose time passed more than a quarter of an hour ago without a run. */
  async finishMissed(): Promise<void> {
    await this.#database.asPlatform().query(
      `UPDATE scheduled_tasks
          SET finished_at = now(), reason = $reason, scheduled = false, set_at = ${LATER}
        WHERE once_at < now() - interval '15 minutes' AND finished_at IS NULL AND enabled
          AND removed_at IS NULL`,
      { reason: 'The time passed while the scheduler could not be reached' },
    );
  }
}

/** A new time of the setting, which differs from the one before. */
export const LATER = `greatest(date_trunc('milliseconds', now()), set_at + interval '1 ms')`;

/** Pauses an enabled task for a reason that its owner reads. */
export async function pauseTask(db: Statements, id: string, reason: string): Promise<void> {
  await db.query(
    `UPDATE scheduled_tasks
        SET enabled = false, reason = $reason, scheduled = false, set_at = ${LATER}
      WHERE id = $id AND enabled`,
    { id, reason },
  );
}

async function finishTask(db: Statements, id: string, reason: string | null): Promise<void> {
  await db.query(
    `UPDATE scheduled_tasks
        SET finished_at = now(), reason = $reason, scheduled = false, set_at = ${LATER}
      WHERE id = $id`,
    { id, reason },
  );
}

/** Makes a worker apply the task's setting once more. */
async function markChanged(db: Statements, id: string): Promise<void> {
  await db.query('UPDATE scheduled_tasks SET scheduled = false WHERE id = $id', { id });
}
