import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Client, ScheduleOverlapPolicy } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import { expect, onTestFinished, test } from 'vitest';
import { createTaskRunRecordActivities, createTaskTurnActivities } from '../../activities/tasks.js';
import { freePort } from '../../dev/ports.js';
import { readSettings } from '../../dev/settings.js';
import { findTemporalCli } from '../../dev/temporal/temporal-binary.js';
import { startTemporal } from '../../dev/temporal/temporal.js';
import { OwnerTurns } from '../../src/agents/chat/owner-turns.js';
import { listRuns } from '../../src/agents/tasks/past-runs.js';
import { getTask, ScheduledTasks } from '../../src/agents/tasks/scheduled-tasks.js';
import { TaskRuns } from '../../src/agents/tasks/task-runs.js';
import { hostLimiters } from '../../src/agents/watchdog/host-limiters.js';
import { putSchedule } from '../../temporal/put-schedule.js';
import { TaskSchedules } from '../../temporal/task-schedules.js';
import { heartbeatsTaskQueue, PLATFORM_TASK_QUEUE } from '../../workflows/ids.js';
import { newTaskAgent, SECRETS, TASK_HOST, TaskGateway } from '../agents/tasks/task-lab.js';
import { testDatabase } from '../support/postgres.js';
import { quietRuntime, workflowCode } from '../support/temporal.js';

const RULES = { adminEmails: [] };

/** Interval of the runs, shorter than users may choose, so that several are missed within seconds. */
const EVERY_MS = 3_000;

test('makes up for one of the runs that were missed while Temporal was stopped', async () => {
  quietRuntime();
  const folder = await mkdtemp(path.join(tmpdir(), 'aps-missed-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const database = await testDatabase();
  onTestFinished(() => database.close());
  const gateway = new TaskGateway();
  onTestFinished(() => gateway.close());
  const agent = await newTaskAgent(database, { port: await gateway.listen() });
  gateway.answer = () => undefined;
  const tenant = database.db.asUser(agent.userId);
  const by = { tenant, actor: agent.userId, requestId: 'r', idempotencyId: randomUUID() };
  const { agentId } = agent;
  const asked = { agentId, name: 'n', message: 'Is the shop open?', schedule: '7d' };
  const task = await new ScheduledTasks(RULES).create(by, asked);

  const server = {
    cli: await findTemporalCli(readSettings(process.env)),
    runDir: folder,
    databaseFile: path.join(folder, 'temporal.db'),
    port: await freePort(),
    uiPort: await freePort(),
  };
  const first = await startTemporal(server);
  const connection = await NativeConnection.connect({ address: first.address });
  const client = new Client({ connection });
  // The policies of a task's schedule, with another interval.
  await new TaskSchedules(client).apply(task);
  const { policies } = await client.schedule.getHandle(`scheduled-task-${task.id}`).describe();
  expect(policies).toMatchObject({ overlap: 'SKIP', catchupWindow: 600_000 });
  await putSchedule(client, {
    id: `scheduled-task-${task.id}`,
    workflow: 'runScheduledTask',
    args: [{ taskId: task.id, setAt: task.setAt.toISOString() }],
    everyMs: EVERY_MS,
    overlap: ScheduleOverlapPolicy.SKIP,
    catchupWindowMs: policies.catchupWindow,
  });
  await first.stop();
  const stopped = Date.now();
  await expect.poll(() => Date.now() - stopped, { timeout: 20_000 }).toBeGreaterThan(3 * EVERY_MS);

  const again = Date.now();
  const second = await startTemporal(server);
  onTestFinished(() => second.stop());
  onTestFinished(() => connection.close());
  const runs = new TaskRuns(database.db, RULES);
  const turns = new OwnerTurns(database.db, SECRETS);
  const workers = await Promise.all([
    Worker.create({
      connection,
      ...(await workflowCode()),
      taskQueue: PLATFORM_TASK_QUEUE,
      activities: createTaskRunRecordActivities({ runs, turns }),
    }),
    Worker.create({
      connection,
      taskQueue: heartbeatsTaskQueue(TASK_HOST),
      activities: createTaskTurnActivities({ runs, turns, limiters: hostLimiters(4) }),
      shutdownForceTime: 1_000,
    }),
  ]);
  const working = Promise.all(workers.map((worker) => worker.run()));
  onTestFinished(async () => {
    for (const worker of workers) worker.shutdown();
    await working.catch(() => undefined);
  });
  await expect.poll(() => gateway.asked.length, { timeout: 60_000 }).toBe(1);
  const schedule = client.schedule.getHandle(`scheduled-task-${task.id}`);
  // At least three runs were missed, and the next ones fall into the run that makes up for them.
  await expect
    .poll(async () => (await schedule.describe()).info.numActionsSkippedOverlap, {
      timeout: 30_000,
    })
    .toBeGreaterThanOrEqual(2);
  const { info } = await schedule.describe();
  expect([info.numActionsTaken, info.numActionsMissedCatchupWindow]).toEqual([1, 0]);
  const [run, ...others] = await listRuns(tenant, await getTask(tenant, task.id));
  expect(others).toEqual([]);
  expect(run?.scheduledFor.getTime()).toBeLessThan(again);
}, 180_000);
