import { ownedThrough } from '../schema/policies.js';
import { protectTable, run, type Migration } from './migration.js';

/** Tasks that users schedule for their agents, and the runs of them. */
export const migration: Migration = async (context) => {
  await run(
    context,
    `CREATE TABLE scheduled_tasks (
       id text PRIMARY KEY,
       user_id text NOT NULL,
       agent_id text NOT NULL,
       name text NOT NULL,
       message text NOT NULL,
       schedule text NOT NULL,
       timezone text NOT NULL,
       -- The time of a schedule with one run.
       once_at timestamptz,
       enabled boolean NOT NULL,
       -- Why the platform has paused or finished the task.
       reason text,
       -- Failed runs in a row.
       failures integer NOT NULL DEFAULT 0,
       finished_at timestamptz,
       -- The last change that the schedule in Temporal has to follow; intervals count from it.
       set_at timestamptz NOT NULL,
       scheduled boolean NOT NULL DEFAULT false,
       -- The row stays until its schedule is removed.
       removed_at timestamptz,
       runs integer NOT NULL DEFAULT 0,
       last_run timestamptz,
       last_status text,
       created_at timestamptz NOT NULL,
       updated_at timestamptz NOT NULL,
       FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id) ON DELETE CASCADE
     );
     CREATE UNIQUE INDEX scheduled_tasks_id_user_key ON scheduled_tasks (id, user_id);
     CREATE INDEX scheduled_tasks_user ON scheduled_tasks (user_id, created_at, id);
     CREATE INDEX scheduled_tasks_agent ON scheduled_tasks (agent_id, created_at, id);
     CREATE INDEX scheduled_tasks_unscheduled ON scheduled_tasks (set_at) WHERE scheduled = false;
     CREATE INDEX scheduled_tasks_once ON scheduled_tasks (once_at)
       WHERE once_at IS NOT NULL AND finished_at IS NULL;
     CREATE TRIGGER scheduled_tasks_told AFTER INSERT ON scheduled_tasks
       FOR EACH STATEMENT EXECUTE FUNCTION tell_of_row();
     CREATE TRIGGER scheduled_tasks_changes_told AFTER UPDATE OF scheduled ON scheduled_tasks
       FOR EACH ROW WHEN (NOT NEW.scheduled) EXECUTE FUNCTION tell_of_row();

     CREATE TABLE scheduled_task_runs (
       -- The id of the run's workflow as well.
       id text PRIMARY KEY,
       task_id text NOT NULL,
       agent_id text NOT NULL,
       user_id text NOT NULL,
       scheduled_for timestamptz NOT NULL,
       started_at timestamptz NOT NULL,
       finished_at timestamptz,
       status text NOT NULL CHECK (status IN ('running', 'succeeded', 'failed', 'skipped')),
       error text,
       due_at timestamptz NOT NULL DEFAULT now(),
       FOREIGN KEY (task_id, user_id) REFERENCES scheduled_tasks (id, user_id) ON DELETE CASCADE,
       FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id) ON DELETE CASCADE
     );
     CREATE UNIQUE INDEX scheduled_task_runs_open_key ON scheduled_task_runs (task_id)
       WHERE status = 'running';
     CREATE INDEX scheduled_task_runs_task ON scheduled_task_runs (task_id, started_at, id);
     CREATE INDEX scheduled_task_runs_agent ON scheduled_task_runs (agent_id);
     CREATE INDEX scheduled_task_runs_user ON scheduled_task_runs (user_id, id);
     CREATE INDEX scheduled_task_runs_due ON scheduled_task_runs (due_at) WHERE status = 'running';
     CREATE INDEX scheduled_task_runs_finished ON scheduled_task_runs (finished_at);
     CREATE TRIGGER scheduled_task_runs_told AFTER INSERT ON scheduled_task_runs
       FOR EACH STATEMENT EXECUTE FUNCTION tell_of_row();`,
  );
  const policy = ownedThrough('user_id');
  await protectTable(context, 'scheduled_tasks', 'SELECT, INSERT, UPDATE, DELETE', policy);
  await protectTable(context, 'scheduled_task_runs', 'SELECT, INSERT, UPDATE, DELETE', policy);
};
