import type { Logger } from 'pino';
import { pauseTask, type TaskRuns } from '../src/agents/tasks/task-runs.js';
import type { Database } from '../src/platform/database/database.js';
import { selectFrom } from '../src/platform/database/schema/table.js';
import { scheduledTasks } from '../src/platform/database/tables/scheduled-tasks.js';
import type { TaskScheduler, TaskSetting } from '../temporal/task-schedules.js';
import type { FollowedRows } from './follow-rows.js';

/** Rows that one statement compares with the schedules. */
const PAGE = 1_000;

/**
 * Maximum number of missed runs that one pass starts: a schedule that was made after the one time of its
 * task starts none.
 */
const MAX_MISSED = 20;

const IS_ACTIVE = 'enabled AND finished_at IS NULL AND removed_at IS NULL';

interface TaskScheduling {
  readonly database: Database;
  readonly schedules: TaskScheduler;
  readonly runs: Pick<TaskRuns, 'finishMissed'>;
  readonly log: Logger;
}

/** Returns scheduled tasks, which Temporal's schedules follow. */
export const followedTasks = ({
  database,
  log,
  runs,
  schedules,
}: TaskScheduling): FollowedRows<TaskSetting> => ({
  async find(most) {
    await runs.finishMissed();
    return database.asPlatform().query<TaskSetting>(
      `(${selectFrom(scheduledTasks)} WHERE scheduled = false ORDER BY set_at LIMIT $most)
       UNION ALL
       (${selectFrom(scheduledTasks)}
         WHERE scheduled AND enabled AND finished_at IS NULL AND removed_at IS NULL
           AND once_at BETWEEN now() - interval '10 minutes' AND now() - interval '15 seconds'
         ORDER BY once_at LIMIT ${MAX_MISSED})`,
      { most: most - MAX_MISSED },
    );
  },
  apply: (task) => schedules.apply(task),
  note: (task) => noteScheduled(database, task),
  async refuse({ id }, error) {
    log.error({ err: error, taskId: id }, 'a task cannot be scheduled');
    await database
      .asPlatform()
      .transaction((db) => pauseTask(db, id, 'The scheduler does not accept the schedule'));
  },
  noticeLost: () => compareSchedules(database, schedules),
  changes: database.changesOf('scheduled_tasks'),
  failure: 'scheduled tasks could not be followed, retrying',
});

/** Marks a schedule as applied if the task is unchanged. A removed task ends with its schedule. */
async function noteScheduled(
  database: Database,
  { id, removedAt, setAt }: TaskSetting,
): Promise<void> {
  const platform = database.asPlatform();
  if (removedAt !== null) {
    await platform.query('DELETE FROM scheduled_tasks WHERE id = $id', { id });
    return;
  }
  await platform.query(
    'UPDATE scheduled_tasks SET scheduled = (set_at = $setAt) WHERE id = $id AND NOT scheduled',
    { id, setAt },
  );
}

/** Removes schedules without a task, and marks tasks whose schedules are missing or left over. */
export async function compareSchedules(
  database: Database,
  schedules: TaskScheduler,
): Promise<void> {
  const platform = database.asPlatform();
  const since = new Date();
  const listed = new Set(await schedules.taskIds());
  const all = [...listed];
  for (let from = 0; from < all.length; from += PAGE) {
    const ids = all.slice(from, from + PAGE);
    const rows = await platform.query<{ id: string }>(
      'SELECT id FROM scheduled_tasks WHERE id = ANY ($ids)',
      { ids },
    );
    const known = new Set(rows.map(({ id }) => id));
    for (const id of ids) if (!known.has(id)) await schedules.remove(id);
    await platform.query(
      `UPDATE scheduled_tasks SET scheduled = false
        WHERE id = ANY ($ids) AND scheduled AND NOT (${IS_ACTIVE})`,
      { ids },
    );
  }
  for (let after = ''; ;) {
    // A new schedule is listed after some seconds.
    const rows = await platform.query<{ id: string }>(
      `SELECT id FROM scheduled_tasks
        WHERE id > $after AND scheduled AND ${IS_ACTIVE}
          AND set_at < $since::timestamptz - interval '1 minute'
        ORDER BY id LIMIT ${PAGE}`,
      { after, since },
    );
    const ids = rows.map(({ id }) => id).filter((id) => !listed.has(id));
    await platform.query('UPDATE scheduled_tasks SET scheduled = false WHERE id = ANY ($ids)', {
      ids,
    });
    const last = rows.at(-1);
    if (!last || rows.length < PAGE) return;
    after = last.id;
  }
}
