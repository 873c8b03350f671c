import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { TurnEnd } from '../../../src/agents/chat/owner-turns.js';
import { markDeleted } from '../../../src/agents/operations/delete-agent.js';
import { listRuns } from '../../../src/agents/tasks/past-runs.js';
import {
  getTask,
  listTasks,
  ScheduledTasks,
  type NewTask,
} from '../../../src/agents/tasks/scheduled-tasks.js';
import { TaskRuns } from '../../../src/agents/tasks/task-runs.js';
import { BadRequestError, ConflictError, NotFoundError } from '../../../src/lib/errors.js';
import { queryRows } from '../../platform/database/catalog.js';
import { newUser, testDatabase, type TestDatabase } from '../../support/postgres.js';
import { newTaskAgent, TASK_HOST } from './task-lab.js';

const RULES = { adminEmails: [] };

let database: TestDatabase;
let ada: string;
let agentId: string;
let tasks: ScheduledTasks;
let runs: TaskRuns;

beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database?.close());
beforeEach(async () => {
  tasks = new ScheduledTasks(RULES);
  runs = new TaskRuns(database.db, RULES);
  ({ agentId, userId: ada } = await newTaskAgent(database));
});

const query = (sql: string, values: Record<string, unknown> = {}) =>
  database.db.asPlatform().query<Record<string, unknown>>(sql, values);

const newAgent = async () => (await newTaskAgent(database, { userId: ada })).agentId;

const by = (userId = ada) => ({
  tenant: database.db.asUser(userId),
  actor: userId,
  requestId: 'r',
  idempotencyId: randomUUID(),
});

const create = (more: Partial<NewTask> = {}) =>
  tasks.create(by(), {
    agentId,
    name: 'watch',
    message: 'Is the shop open?',
    schedule: '30m',
    ...more,
  });

const read = (id: string) => getTask(by().tenant, id);

/** Begins a run as the workflow of the task's schedule does. */
async function begin(taskId: string, id = `scheduled-task-${taskId}-${randomUUID()}`) {
  const { setAt } = await read(taskId);
  const scheduledFor = new Date().toISOString();
  return runs.begin({ id, taskId, setAt: setAt.toISOString(), scheduledFor });
}

async function runOnce(taskId: string, end: TurnEnd): Promise<void> {
  const run = await begin(taskId);
  await runs.finish(run!, end);
}

const FAILED = { kind: 'failed', reason: 'no answer' } as const;
const ANSWERED = { kind: 'answered', answer: 'yes' } as const;

const statuses = async (id: string) =>
  (await listRuns(by().tenant, await read(id))).map(({ error, status }) => [status, error]);

test("creates, lists, changes and removes only the user's own tasks", async () => {
  const task = await create();
  expect(task).toMatchObject({ enabled: true, timezone: 'UTC', runs: 0, scheduled: false });
  const bob = await newUser(database);
  const other = by(bob);
  await expect(getTask(other.tenant, task.id)).rejects.toThrow(NotFoundError);
  await expect(tasks.change(other, task.id, { run: true })).rejects.toThrow(NotFoundError);
  await expect(tasks.remove(other, task.id)).rejects.toThrow(NotFoundError);
  const asked = { agentId, name: 'n', message: 'm', schedule: '30m' };
  await expect(tasks.create(other, asked)).rejects.toThrow(NotFoundError);
  expect(await read(task.id)).toEqual(task);

  const changed = await tasks.change(by(), task.id, { name: 'look', schedule: '0 9 * * *' });
  expect(changed).toMatchObject({ name: 'look', message: task.message, schedule: '0 9 * * *' });
  expect(changed.setAt.getTime()).toBeGreaterThan(task.setAt.getTime());
  const { items } = await listTasks(by().tenant, ada, { limit: 10 });
  expect(items).toEqual([changed]);
  await tasks.remove(by(), task.id);
  await expect(read(task.id)).rejects.toThrow(NotFoundError);
  expect((await listTasks(by().tenant, ada, { limit: 10 })).items).toEqual([]);
});

test('is the first task when the request to create is repeated', async () => {
  const [requester, wanted] = [by(), { agentId, name: 'n', message: 'm', schedule: '30m' }];
  const first = await tasks.create(requester, wanted);
  expect(await tasks.create(requester, wanted)).toEqual(first);
  expect((await listTasks(by().tenant, ada, { limit: 10 })).items).toEqual([first]);
});

test('refuses times that are not usable, before any change', async () => {
  const task = await create();
  await expect(create({ schedule: '* * * * *' })).rejects.toThrow(BadRequestError);
  await expect(create({ timezone: 'Mars/Olympus' })).rejects.toThrow(/^timezone /);
  await expect(tasks.change(by(), task.id, { name: 'x', schedule: '1m' })).rejects.toThrow(
    /^schedule /,
  );
  expect(await read(task.id)).toEqual(task);
  expect((await listTasks(by().tenant, ada, { limit: 10 })).items).toHaveLength(1);
});

test(
  'grants the last place of an agent to one of fifty concurrent requests',
  { tags: 'attack' },
  async () => {
    for (let count = 0; count < 19; count++) await create();
    const results = await Promise.allSettled(Array.from({ length: 50 }, () => create()));
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const refused = results.find(({ status }) => status === 'rejected');
    expect(refused).toMatchObject({
      reason: { code: 'TASK_LIMIT_REACHED', facts: { current: 20, limit: 20 } },
    });
  },
);

test(
  'grants the last place of a user to one of fifty concurrent requests',
  { tags: 'attack' },
  async () => {
    const agents = [agentId, ...(await Promise.all(Array.from({ length: 5 }, () => newAgent())))];
    for (let count = 0; count < 99; count++) {
      await create({ agentId: agents[Math.floor(count / 20)]! });
    }
    const results = await Promise.allSettled(
      Array.from({ length: 50 }, () => create({ agentId: agents[5]! })),
    );
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const refused = results.find(({ status }) => status === 'rejected');
    expect(refused).toMatchObject({ reason: { facts: { current: 100, limit: 100 } } });
  },
);

test('runs a task once for fifty concurrent requests', { tags: 'attack' }, async () => {
  const { id } = await create({ enabled: false });
  const results = await Promise.allSettled(
    Array.from({ length: 50 }, () => tasks.change(by(), id, { run: true })),
  );
  const failed = results.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
  expect(failed).toHaveLength(49);
  for (const error of failed) expect(error).toBeInstanceOf(ConflictError);
  expect(await read(id)).toMatchObject({ runs: 1, lastStatus: 'running' });
});

test('begins a run once, however often its workflow begins', async () => {
  const { id } = await create();
  const [one, two] = await Promise.all([begin(id, 'run-1'), begin(id, 'run-1')]);
  expect(one).toEqual({ id: 'run-1', agent: { agentId, userId: ada, host: TASK_HOST } });
  expect(two).toEqual(one);
  expect(await runs.question(one!)).toEqual({
    conversation: `task-${id}`,
    text: 'Is the shop open?',
  });
  await runs.finish(one!, ANSWERED);
  await runs.finish(one!, FAILED);
  expect(await begin(id, 'run-1')).toBeUndefined();
  expect(await runs.question(one!)).toBeUndefined();
  expect(await statuses(id)).toEqual([['succeeded', null]]);
  expect(await read(id)).toMatchObject({ runs: 1, lastStatus: 'succeeded', failures: 0 });
});

test('skips a run with its reason', async () => {
  const { id } = await create();
  const open = await begin(id);
  expect(await begin(id)).toBeUndefined();
  await runs.finish(open!, ANSWERED);
  await query(`UPDATE agents SET desired = 'stopped' WHERE id = $agentId`, { agentId });
  expect(await begin(id)).toBeUndefined();
  await query(`UPDATE agents SET desired = 'running' WHERE id = $agentId`, { agentId });
  await queryRows(database.ownerUrl, `DELETE FROM subscriptions WHERE user_id = '${ada}'`);
  await tasks.change(by(), id, { run: true });
  expect(await statuses(id)).toEqual([
    ['skipped', "The agent's owner has no plan"],
    ['skipped', 'The agent is not running'],
    ['skipped', 'The previous run is still open'],
    ['succeeded', null],
  ]);
  expect(await read(id)).toMatchObject({ runs: 4, lastStatus: 'skipped' });
});

test('starts no run from an outdated schedule, and applies the setting once more', async () => {
  const { id, setAt } = await create();
  await query('UPDATE scheduled_tasks SET scheduled = true WHERE id = $id', { id });
  await tasks.change(by(), id, { schedule: '1d' });
  await query('UPDATE scheduled_tasks SET scheduled = true WHERE id = $id', { id });
  const scheduledFor = new Date().toISOString();
  const late = { id: 'late', taskId: id, setAt: setAt.toISOString(), scheduledFor };
  expect(await runs.begin(late)).toBeUndefined();
  expect(await read(id)).toMatchObject({ scheduled: false, runs: 0 });
  await tasks.remove(by(), id);
  expect(await runs.begin(late)).toBeUndefined();
});

test('pauses a task after ten failures in a row, until its user resumes it', async () => {
  const { id } = await create();
  for (let count = 0; count < 9; count++) await runOnce(id, FAILED);
  await runOnce(id, { kind: 'skipped', reason: 'The agent is not running' });
  expect(await read(id)).toMatchObject({ failures: 9, enabled: true });
  await runOnce(id, ANSWERED);
  for (let count = 0; count < 10; count++) await runOnce(id, FAILED);
  expect(await read(id)).toMatchObject({
    enabled: false,
    scheduled: false,
    reason: 'Ten runs failed in a row. The last one: no answer',
  });
  expect(await tasks.change(by(), id, { enabled: true })).toMatchObject({
    enabled: true,
    reason: null,
    failures: 0,
  });
});

test('finishes a task with one run when the run begins, or when its time was missed', async () => {
  const soon = new Date(Date.now() + 60_000).toISOString();
  const { id } = await create({ schedule: soon });
  expect((await begin(id))?.id).toBeDefined();
  expect((await read(id)).finishedAt).not.toBeNull();
  await expect(tasks.change(by(), id, { schedule: '2020-01-01T00:00Z' })).rejects.toThrow(
    BadRequestError,
  );
  const later = new Date(Date.now() + 120_000).toISOString();
  expect((await tasks.change(by(), id, { schedule: later })).finishedAt).toBeNull();
  await query(`UPDATE scheduled_tasks SET once_at = now() - interval '16 minutes' WHERE id = $id`, {
    id,
  });
  await runs.finishMissed();
  const { finishedAt, reason } = await read(id);
  expect(finishedAt).not.toBeNull();
  expect(reason).toBe('The time passed while the scheduler could not be reached');
});

test('keeps a hundred runs of a task', async () => {
  const { id } = await create();
  for (let count = 0; count < 102; count++) await runOnce(id, ANSWERED);
  expect(await statuses(id)).toHaveLength(100);
  expect(
    await query('SELECT id FROM scheduled_task_runs WHERE task_id = $id', { id }),
  ).toHaveLength(100);
  expect((await read(id)).runs).toBe(102);
});

test('removes the tasks of an agent with the agent', async () => {
  const { id } = await create();
  await by().tenant.transaction((db) => markDeleted(db, agentId, '', new Date()));
  await expect(read(id)).rejects.toThrow(NotFoundError);
  await expect(create()).rejects.toThrow(NotFoundError);
  const [row] = await query('SELECT scheduled FROM scheduled_tasks WHERE id = $id', { id });
  expect(row).toEqual({ scheduled: false });
});
