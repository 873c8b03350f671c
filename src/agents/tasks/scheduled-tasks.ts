import type { AdminRules } from '../../accounts/accounts/admin.js';
import { BadRequestError, ConflictError, NotFoundError } from '../../lib/errors.js';
import { recordAudit } from '../../platform/audit/audit.js';
import type { Requester } from '../../platform/audit/requester.js';
import type { Statements, TenantDatabase } from '../../platform/database/database.js';
import type { ScheduledTaskRow } from '../../platform/database/models.js';
import { selectFrom } from '../../platform/database/schema/table.js';
import { scheduledTasks } from '../../platform/database/tables/scheduled-tasks.js';
import type { Page } from '../agents/agents.js';
import { hasOpenRun, openRun } from './open-run.js';
import { requestedRunId } from './task-ids.js';
import { LATER } from './task-runs.js';
import { parseSchedule, requireUsable } from './task-schedule.js';
import { isTimeZone } from './zoned-time.js';

const MAX_OF_AGENT = 20;
const MAX_OF_USER = 100;

export interface NewTask {
  readonly agentId: string;
  readonly name: string;
  readonly message: string;
  readonly schedule: string;
  readonly timezone?: string | undefined;
  readonly enabled?: boolean | undefined;
}

export type TaskChange = Partial<Omit<NewTask, 'agentId'>> & { readonly run?: true | undefined };

type Setting = Pick<ScheduledTaskRow, 'schedule' | 'timezone' | 'enabled'>;

/** The tasks that users schedule for their agents. Workers keep Temporal's schedules like the rows. */
export class ScheduledTasks {
  readonly #admins: AdminRules;

  constructor(admins: AdminRules) {
    this.#admins = admins;
  }

  /**
   * Creates a task. The same request again returns the first task. @throws BadRequestError for its times;
   * NotFoundError without the agent; ConflictError with `current` and `limit` at the limit of tasks
   */
  async create(by: Requester, requested: NewTask): Promise<ScheduledTaskRow> {
    const { agentId, enabled = true, message, name, schedule, timezone = 'UTC' } = requested;
    const setting = { schedule, timezone, enabled };
    const onceAt = usableTimes(setting, Date.now());
    const id = by.idempotencyId;
    return by.tenant.transaction(async (db) => {
      // Serializes a user's creations, so that two concurrent ones cannot exceed the limits.
      await db.lock(`scheduled-tasks-of:${by.actor}`);
      const [earlier] = await db.query('SELECT FROM scheduled_tasks WHERE id = $id', { id });
      if (earlier) return findIn(db, id);
      const agents = await db.query(
        `SELECT FROM agents WHERE id = $agentId AND user_id = $userId AND desired <> 'deleted'
            AND deleted_at IS NULL FOR NO KEY UPDATE`,
        { agentId, userId: by.actor },
      );
      if (agents.length === 0) throw new NotFoundError('Agent not found');
      await requireRoom(db, by.actor, agentId);
      const now = new Date();
      await db.query(
        `INSERT INTO scheduled_tasks (id, user_id, agent_id, name, message, schedule, timezone,
                                      once_at, enabled, set_at, created_at, updated_at)
         VALUES ($id, $userId, $agentId, $name, $message, $schedule, $timezone, $onceAt, $enabled,
                 $now, $now, $now)`,
        { ...setting, id, userId: by.actor, agentId, name, message, onceAt, now },
      );
      await audit(db, by, id, 'task.create');
      return findIn(db, id);
    });
  }

  /**
   * Changes a task, and with `run` also runs it now; omitted fields stay. @throws NotFoundError;
   * BadRequestError for its times; ConflictError for `run` while it runs
   */
  async change(by: Requester, id: string, change: TaskChange): Promise<ScheduledTaskRow> {
    const { run, ...fields } = change;
    return by.tenant.transaction(async (db) => {
      const before = await findIn(db, id, 'FOR UPDATE');
      const wanted = { ...before, ...definedOf(fields) };
      const isSet = ['schedule', 'timezone', 'enabled'].some((name) => name in definedOf(fields));
      if (isSet) await applySetting(db, before, wanted);
      if (Object.keys(definedOf(fields)).length > 0) {
        await db.query(
          `UPDATE scheduled_tasks SET name = $name, message = $message,
                  updated_at = date_trunc('milliseconds', now())
            WHERE id = $id`,
          { id, name: wanted.name, message: wanted.message },
        );
        await audit(db, by, id, 'task.change', { fields: Object.keys(definedOf(fields)) });
      }
      if (run) await this.#run(db, by, before);
      return findIn(db, id);
    });
  }

  /** Removes a task; its messages stay. @throws NotFoundError */
  async remove(by: Requester, id: string): Promise<void> {
    await by.tenant.transaction(async (db) => {
      const { id: found } = await findIn(db, id, 'FOR UPDATE');
      await db.query(
        `UPDATE scheduled_tasks SET removed_at = now(), scheduled = false, set_at = ${LATER}
          WHERE id = $id`,
        { id: found },
      );
      await audit(db, by, id, 'task.delete');
    });
  }

  async #run(db: Statements, by: Requester, task: ScheduledTaskRow): Promise<void> {
    if (await hasOpenRun(db, task.id)) {
      throw new ConflictError('The task is running already', 'TASK_RUNNING');
    }
    const run = { id: requestedRunId(task.id), scheduledFor: new Date(), isRequested: true };
    await openRun(db, task, run, this.#admins);
    await audit(db, by, task.id, 'task.run');
  }
}

/** Returns a user's tasks, oldest first, or those of one agent. */
export async function listTasks(
  tenant: TenantDatabase,
  userId: string,
  page: {
    readonly agentId?: string | undefined;
    readonly limit: number;
    readonly after?: readonly [string, string] | undefined;
  },
): Promise<Page<ScheduledTaskRow>> {
  const { agentId, after, limit } = page;
  const rows = await tenant.query<ScheduledTaskRow>(
    `${selectFrom(scheduledTasks)}
      WHERE user_id = $userId AND removed_at IS NULL
        ${agentId === undefined ? '' : 'AND agent_id = $agentId'}
        ${after === undefined ? '' : 'AND (created_at, id) > ($createdAt::timestamptz, $id)'}
      ORDER BY created_at, id LIMIT $most`,
    { userId, agentId, ...(after && { createdAt: after[0], id: after[1] }), most: limit + 1 },
  );
  const items = rows.slice(0, limit);
  const last = rows.length > limit ? items.at(-1) : undefined;
  return { items, next: last && [last.createdAt.toISOString(), last.id] };
}

/** @throws NotFoundError also when the task is another user's */
export const getTask = (tenant: TenantDatabase, id: string): Promise<ScheduledTaskRow> =>
  findIn(tenant, id);

async function findIn(
  db: Pick<Statements, 'query'>,
  id: string,
  lock: '' | 'FOR UPDATE' = '',
): Promise<ScheduledTaskRow> {
  const [task] = await db.query<ScheduledTaskRow>(
    `${selectFrom(scheduledTasks)} WHERE id = $id AND removed_at IS NULL ${lock}`,
    { id },
  );
  if (!task) throw new NotFoundError('Task not found');
  return task;
}

async function requireRoom(db: Statements, userId: string, agentId: string): Promise<void> {
  const [count] = await db.query<{ ofUser: number; ofAgent: number }>(
    `SELECT count(*)::integer AS "ofUser",
            (count(*) FILTER (WHERE agent_id = $agentId))::integer AS "ofAgent"
       FROM scheduled_tasks WHERE user_id = $userId AND removed_at IS NULL`,
    { userId, agentId },
  );
  const { ofAgent = 0, ofUser = 0 } = count ?? {};
  if (ofAgent >= MAX_OF_AGENT) throw full('The agent', ofAgent, MAX_OF_AGENT);
  if (ofUser >= MAX_OF_USER) throw full('You', ofUser, MAX_OF_USER);
}

const full = (subject: string, current: number, limit: number): ConflictError =>
  new ConflictError(
    `${subject} cannot have more than ${limit} scheduled tasks: remove one first`,
    'TASK_LIMIT_REACHED',
    { current, limit },
  );

/** Stores a setting that the schedule has to follow. A new one resumes a task that was paused or finished. */
async function applySetting(db: Statements, before: Setting, wanted: ScheduledTaskRow) {
  const { enabled, id, schedule, timezone } = wanted;
  const isNew = schedule !== before.schedule || timezone !== before.timezone;
  const onceAt = enabled || isNew ? usableTimes(wanted, Date.now()) : wanted.onceAt;
  await db.query(
    `UPDATE scheduled_tasks
        SET schedule = $schedule, timezone = $timezone, once_at = $onceAt, enabled = $enabled,
            finished_at = CASE WHEN $resumes THEN NULL ELSE finished_at END,
            reason = CASE WHEN $resumes THEN NULL ELSE reason END,
            failures = CASE WHEN $resumes THEN 0 ELSE failures END,
            scheduled = false, set_at = ${LATER}
      WHERE id = $id`,
    { id, schedule, timezone, onceAt, enabled, resumes: enabled || isNew },
  );
}

/** Checks times, and returns the one of a schedule with one run. @throws BadRequestError */
function usableTimes({ schedule, timezone }: Omit<Setting, 'enabled'>, now: number): Date | null {
  if (!isTimeZone(timezone)) {
    throw new BadRequestError('timezone must be a name of the IANA time zone database');
  }
  const times = parseSchedule(schedule, timezone);
  requireUsable(times, timezone, now);
  return times.kind === 'once' ? new Date(times.at) : null;
}

/** Returns the fields that a request names. */
function definedOf<T extends object>(fields: T): Partial<T> {
  const named = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(named) as Partial<T>; // fields of the same object
}

const audit = (
  db: Statements,
  { actor, requestId }: Requester,
  subject: string,
  action: string,
  detail?: Record<string, unknown>,
): Promise<void> =>
  recordAudit(db, { actor, userId: actor, action, subject, requestId, ...(detail && { detail }) });
