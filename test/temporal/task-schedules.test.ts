// @module-tag attack
import { randomUUID } from 'node:crypto';
import {
  Client,
  Connection,
  ScheduleNotFoundError,
  ScheduleOverlapPolicy,
} from '@temporalio/client';
import { Worker } from '@temporalio/worker';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createTaskRunRecordActivities, createTaskTurnActivities } from '../../activities/tasks.js';
import { OwnerTurns } from '../../src/agents/chat/owner-turns.js';
import { listRuns } from '../../src/agents/tasks/past-runs.js';
import { getTask, ScheduledTasks } from '../../src/agents/tasks/scheduled-tasks.js';
import { taskScheduleId } from '../../src/agents/tasks/task-ids.js';
import { TaskRuns } from '../../src/agents/tasks/task-runs.js';
import { hostLimiters } from '../../src/agents/watchdog/host-limiters.js';
import { UnavailableError } from '../../src/lib/errors.js';
import type { AgentRef } from '../../src/types/agent-ref.js';
import { startTaskRun } from '../../temporal/task-runs.js';
import { TaskSchedules } from '../../temporal/task-schedules.js';
import { followRows } from '../../worker/follow-rows.js';
import { taskRuns } from '../../worker/handed-rows.js';
import { handOver } from '../../worker/hand-over.js';
import { compareSchedules, followedTasks } from '../../worker/schedule-tasks.js';
import { heartbeatsTaskQueue, PLATFORM_TASK_QUEUE } from '../../workflows/ids.js';
import { AGENT_OWNER } from '../../workflows/search-attributes.js';
import { newTaskAgent, saying, SECRETS, TASK_HOST, TaskGateway } from '../agents/tasks/task-lab.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';
import { until } from '../support/until.js';
import { testTemporal, workerLog, workflowCode, type TestTemporal } from '../support/temporal.js';

const RULES = { adminEmails: [] };
const TEXT = 'Is the shop open?';

let database: TestDatabase;
let temporal: TestTemporal;
let gateway: TaskGateway;
let agent: AgentRef;
let runs: TaskRuns;
let workers: Worker[];
let working: Promise<unknown>;

beforeAll(async () => {
  [database, temporal] = await Promise.all([testDatabase(), testTemporal()]);
  gateway = new TaskGateway();
  agent = await newTaskAgent(database, { port: await gateway.listen() });
  runs = new TaskRuns(database.db, RULES);
  const turns = new OwnerTurns(database.db, SECRETS);
  const { connection, namespace } = temporal;
  workers = await Promise.all([
    Worker.create({
      connection,
      namespace,
      ...(await workflowCode()),
      taskQueue: PLATFORM_TASK_QUEUE,
      activities: createTaskRunRecordActivities({ runs, turns }),
    }),
    Worker.create({
      connection,
      namespace,
      taskQueue: heartbeatsTaskQueue(TASK_HOST),
      activities: createTaskTurnActivities({ runs, turns, limiters: hostLimiters(4) }),
    }),
  ]);
  working = Promise.all(workers.map((worker) => worker.run()));
});
afterAll(async () => {
  for (const worker of workers ?? []) worker.shutdown();
  await working;
  gateway?.close();
  await temporal?.close();
  await database?.close();
});
beforeEach(async () => {
  gateway.asked.length = 0;
  gateway.answer = saying('Yes, it is');
  await database.db.asPlatform().query('DELETE FROM scheduled_tasks');
});

const tasks = new ScheduledTasks(RULES);
const by = () => ({
  tenant: database.db.asUser(agent.userId),
  actor: agent.userId,
  requestId: 'r',
  idempotencyId: randomUUID(),
});
const create = (schedule = '7d', timezone = 'UTC') =>
  tasks.create(by(), { agentId: agent.agentId, name: 'watch', message: TEXT, schedule, timezone });
const read = (id: string) => getTask(by().tenant, id);
const query = (sql: string, values: Record<string, unknown> = {}) =>
  database.db.asPlatform().query<Record<string, unknown>>(sql, values);

/** Returns the tasks as a worker follows them. */
const followed = (client = temporal.client) =>
  followedTasks({
    database: database.db,
    schedules: new TaskSchedules(client),
    runs,
    log: pino({ level: 'silent' }),
  });
const follow = () => followRows(followed());

const handle = (id: string) => temporal.client.schedule.getHandle(taskScheduleId(id));
const isThere = async (id: string) => {
  try {
    await handle(id).describe();
    return true;
  } catch (error) {
    if (error instanceof ScheduleNotFoundError) return false;
    throw error;
  }
};
const statuses = async (id: string) =>
  (await listRuns(by().tenant, await read(id))).map(({ answer, status }) => [status, answer]);

test('has a schedule that follows the row of its task until the row is removed', async () => {
  const { id } = await create('0 9 1 * MON', 'Europe/Berlin');
  expect(await follow()).toBe(1);
  const { action, policies, spec, info } = await handle(id).describe();
  expect(policies).toMatchObject({ overlap: 'SKIP', catchupWindow: 600_000 });
  expect(spec.timezone).toBe('Europe/Berlin');
  expect(action).toMatchObject({
    workflowType: 'runScheduledTask',
    staticSummary: `Scheduled task ${id}`,
  });
  expect(JSON.stringify(action.typedSearchAttributes)).toContain(agent.agentId);
  expect(JSON.stringify(action.typedSearchAttributes)).toContain(agent.userId);
  expect(info.nextActionTimes.length).toBeGreaterThan(0);
  expect(await read(id)).toMatchObject({ scheduled: true });

  const once = new Date(Math.floor(Date.now() / 1_000) * 1_000 + 3_600_000);
  await tasks.change(by(), id, { schedule: once.toISOString() });
  await follow();
  expect((await handle(id).describe()).info.nextActionTimes).toEqual([once]);

  await tasks.change(by(), id, { schedule: '30m' });
  await follow();
  const [next] = (await handle(id).describe()).info.nextActionTimes;
  expect(Number(next) % 1_800_000).toBe(
    (Math.floor((await read(id)).setAt.getTime() / 1_000) * 1_000) % 1_800_000,
  );

  await tasks.change(by(), id, { enabled: false });
  await follow();
  expect(await isThere(id)).toBe(false);
  await tasks.change(by(), id, { enabled: true });
  await follow();
  expect(await isThere(id)).toBe(true);
  await tasks.remove(by(), id);
  await follow();
  expect(await isThere(id)).toBe(false);
  expect(await query('SELECT id FROM scheduled_tasks')).toEqual([]);
});

test('makes the schedule of a task once Temporal can be reached', async () => {
  const { id } = await create();
  const away = new Client({ connection: Connection.lazy({ address: '127.0.0.1:1' }) });
  await expect(followRows(followed(away))).rejects.toThrow(UnavailableError);
  expect(await read(id)).toMatchObject({ scheduled: false, enabled: true });
  await follow();
  expect(await isThere(id)).toBe(true);
}, 60_000);

test('pauses a task whose schedule Temporal refuses, and follows the others', async () => {
  const [refused, other] = [await create('0 9 * * *'), await create()];
  await query(`UPDATE scheduled_tasks SET timezone = 'Mars/Olympus' WHERE id = $id`, refused);
  await follow();
  expect(await isThere(other.id)).toBe(true);
  expect(await read(refused.id)).toMatchObject({
    enabled: false,
    reason: 'The scheduler does not accept the schedule',
  });
});

test('sends the task to the agent when a schedule is due, and stores the answer', async () => {
  const { id } = await create();
  await follow();
  await handle(id).trigger();
  await expect.poll(() => statuses(id), { timeout: 30_000 }).toEqual([['succeeded', 'Yes, it is']]);
  expect(gateway.asked).toMatchObject([
    { user: `task-${id}`, messages: [{ role: 'user', content: TEXT }] },
  ]);
  expect(await read(id)).toMatchObject({ runs: 1, lastStatus: 'succeeded' });
  expect(JSON.stringify(workerLog)).not.toContain(TEXT);
});

test('skips a run that is due while the previous one is open', async () => {
  let finish: () => void = () => undefined;
  gateway.answer = (response) => {
    finish = () => saying('at last')(response);
  };
  const { id } = await create();
  await follow();
  await handle(id).trigger(ScheduleOverlapPolicy.SKIP);
  await expect.poll(() => gateway.asked.length, { timeout: 30_000 }).toBe(1);
  await handle(id).trigger(ScheduleOverlapPolicy.SKIP);
  await expect
    .poll(async () => (await handle(id).describe()).info.numActionsSkippedOverlap, {
      timeout: 30_000,
    })
    .toBe(1);
  await expect(tasks.change(by(), id, { run: true })).rejects.toMatchObject({
    code: 'TASK_RUNNING',
  });
  // A trigger that ignores the policy, as by an operator, has a row; ids of runs differ by the second.
  await expect
    .poll(async () => (await handle(id).trigger(), statuses(id)), { timeout: 30_000 })
    .toContainEqual(['skipped', null]);
  finish();
  await expect
    .poll(() => statuses(id), { timeout: 30_000 })
    .toContainEqual(['succeeded', 'at last']);
  expect(gateway.asked).toHaveLength(1);
});

test('runs a paused task that its user requests, once', async () => {
  const { id } = await create();
  await tasks.change(by(), id, { enabled: false, run: true });
  const handed = taskRuns(database.db, (run) => startTaskRun(temporal.client, run));
  expect(await handOver(database.db, handed)).toBe(1);
  await query('UPDATE scheduled_task_runs SET due_at = now()');
  await handOver(database.db, handed);
  await expect.poll(() => statuses(id), { timeout: 30_000 }).toEqual([['succeeded', 'Yes, it is']]);
  expect(gateway.asked).toHaveLength(1);
  const { started } = await runOf(id);
  expect(started).toMatchObject({ summary: `Scheduled task ${id}`, owner: agent.userId });
});

async function runOf(id: string) {
  const [run] = await listRuns(by().tenant, await read(id));
  const described = await temporal.client.workflow.getHandle(run!.id).describe();
  const summary = await described.staticSummary();
  const owner = described.typedSearchAttributes.get(AGENT_OWNER);
  return { started: { summary, owner } };
}

test('removes schedules without a task, and makes missing ones again', async () => {
  const [kept, lost, gone] = [await create(), await create(), await create()];
  await follow();
  const schedules = new TaskSchedules(temporal.client);
  await expect
    .poll(async () => (await schedules.taskIds()).length, { timeout: 30_000 })
    .toBeGreaterThanOrEqual(3);
  await query('DELETE FROM scheduled_tasks WHERE id = $id', { id: gone.id });
  await handle(lost.id).delete();
  await expect
    .poll(async () => (await schedules.taskIds()).includes(lost.id), { timeout: 30_000 })
    .toBe(false);
  await query(`UPDATE scheduled_tasks SET set_at = set_at - interval '1 hour'`);
  await compareSchedules(database.db, schedules);
  await follow();
  expect(await Promise.all([kept, lost, gone].map(({ id }) => isThere(id)))).toEqual([
    true,
    true,
    false,
  ]);
});

test('starts the one run of a task whose time passed before its schedule was made', async () => {
  const at = new Date(Date.now() + 1_000);
  const { id } = await create(at.toISOString());
  await until(() => Date.now() > at.getTime());
  expect(await follow()).toBe(1);
  await expect.poll(() => statuses(id)).toEqual([['succeeded', 'Yes, it is']]);
  expect(await read(id)).toMatchObject({ runs: 1, reason: null, finishedAt: expect.any(Date) });
  // A worker that died after the trigger triggers again.
  await query('UPDATE scheduled_tasks SET finished_at = NULL, scheduled = false');
  const setting = await read(id);
  await query('UPDATE scheduled_tasks SET finished_at = now()');
  await new TaskSchedules(temporal.client).apply({ ...setting, finishedAt: null });
  await expect
    .poll(async () => (await handle(id).describe()).info.numActionsTaken)
    .toBeGreaterThan(0);
  expect(await statuses(id)).toEqual([['succeeded', 'Yes, it is']]);
  expect(gateway.asked).toHaveLength(1);
});

test('starts a run that its schedule has lost, for ten minutes', async () => {
  const { id } = await create(new Date(Date.now() + 60_000).toISOString());
  await follow();
  const passed = (interval: string) =>
    query(`UPDATE scheduled_tasks SET once_at = now() - interval '${interval}'`);
  for (const interval of ['11 minutes', '5 seconds']) {
    await passed(interval);
    expect(await follow()).toBe(0);
  }
  await passed('20 seconds');
  expect(await follow()).toBe(1);
  await expect.poll(() => statuses(id)).toEqual([['succeeded', 'Yes, it is']]);
});
