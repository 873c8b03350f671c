import { Worker } from '@temporalio/worker';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createHousekeepingActivities } from '../../activities/housekeeping.js';
import { usageDaily } from '../../src/usage/reports.js';
import { putSchedules } from '../../temporal/schedules.js';
import { PLATFORM_TASK_QUEUE } from '../../workflows/ids.js';
import { until } from '../support/docker.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';
import { testTemporal, workflowCode, type TestTemporal } from '../support/temporal.js';
import { randomCalls, settle } from '../usage/support.js';

let database: TestDatabase;
let temporal: TestTemporal;

beforeAll(async () => {
  [database, temporal] = await Promise.all([testDatabase(), testTemporal()]);
});
afterAll(async () => {
  await temporal?.close();
  await database?.close();
});

test('usage is added up by a schedule, which is the same however often it is made', async () => {
  const { db } = database;
  const { client, connection, namespace } = temporal;
  await putSchedules(client, 'host-1');
  await putSchedules(client, 'host-1');
  const schedule = client.schedule.getHandle('keep-usage');
  const { spec, policies } = await schedule.describe();
  expect(spec.intervals).toMatchObject([{ every: 60_000 }]);
  expect(policies.overlap).toBe('SKIP');

  const days = ['2026-02-28'];
  await settle(db, randomCalls(20, 1, { users: ['ada'], days }));
  const worker = await Worker.create({
    connection,
    namespace,
    ...(await workflowCode()),
    taskQueue: PLATFORM_TASK_QUEUE,
    activities: createHousekeepingActivities(db),
  });
  await worker.runUntil(async () => {
    await schedule.trigger();
    await until(
      async () => (await db.asPlatform().query('SELECT id FROM usage_pending')).length === 0,
      60_000,
    );
  });
  const period = { from: '2026-02-28', to: '2026-02-28' };
  expect(await usageDaily(db.asUser('ada'), period)).toMatchObject([{ calls: 20 }]);
});
