import { ScheduleOverlapPolicy } from '@temporalio/client';
import { Worker } from '@temporalio/worker';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createHousekeepingActivities } from '../../activities/housekeeping.js';
import { createMoneyActivities } from '../../activities/money.js';
import { ChainNode } from '../../src/money/chain/chain-node.js';
import { balanceOf, hold, transfer } from '../../src/money/ledger/ledger.js';
import { usageDaily } from '../../src/ai/usage/reports.js';
import { putSchedule } from '../../temporal/put-schedule.js';
import { putSchedules } from '../../temporal/schedules.js';
import { PLATFORM_TASK_QUEUE } from '../../workflows/ids.js';
import { queryRows } from '../platform/database/catalog.js';
import { until } from '../support/until.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';
import { testTemporal, workflowCode, type TestTemporal } from '../support/temporal.js';
import { randomCalls, settle } from '../ai/usage/support.js';

let database: TestDatabase;
let temporal: TestTemporal;

beforeAll(async () => {
  [database, temporal] = await Promise.all([testDatabase(), testTemporal()]);
});
afterAll(async () => {
  await temporal?.close();
  await database?.close();
});

test('a schedule rolls up usage, and creating it twice makes one schedule', async () => {
  const { db } = database;
  const { client, connection, namespace } = temporal;
  await putSchedules(client, 'host-1');
  await putSchedules(client, 'host-1');
  const schedule = client.schedule.getHandle('roll-up-usage');
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

test('schedules release expired holds and check the ledger', async () => {
  const { db } = database;
  const { client, connection, namespace } = temporal;
  await putSchedules(client, 'host-1');
  const [keep, check] = ['expire-holds', 'check-ledger'].map((id) => client.schedule.getHandle(id));
  expect((await keep?.describe())?.spec.intervals).toMatchObject([{ every: 30_000 }]);
  expect((await check?.describe())?.spec.intervals).toMatchObject([{ every: 3_600_000 }]);

  const session = 'session:of-a-process-that-died';
  const common = { amount: 5n, currency: 'pathusd' } as const;
  const platform = db.asPlatform();
  await transfer(platform, { ...common, debit: 'external', credit: session, cause: 'deposit:1' });
  const held = { ...common, debit: session, credit: 'treasury', cause: 'voucher:1' } as const;
  await hold(platform, { ...held, forMs: -1 });
  // Makes the account's balance wrong, so that the check has something to report.
  await queryRows(
    database.ownerUrl,
    `UPDATE ledger_accounts SET balance = 6 WHERE name = '${session}'`,
  );
  const worker = await Worker.create({
    connection,
    namespace,
    ...(await workflowCode()),
    taskQueue: PLATFORM_TASK_QUEUE,
    activities: createMoneyActivities({
      database: db,
      chain: { node: new ChainNode({ chainId: 4217, url: undefined }), treasury: undefined },
      knownChains: { own: 4217, royalties: 4217 },
      sessionSettings: { holdMs: 3_600_000, maxAgeMs: 3_600_000 },
    }),
  });
  await worker.runUntil(async () => {
    await keep?.trigger();
    await check?.trigger();
    const reported = () =>
      platform.query('SELECT FROM pending_notifications WHERE agent_id IS NULL');
    await until(async () => (await balanceOf(platform, session, 'pathusd')).held === 0n);
    await until(async () => (await reported()).length > 0);
  });
});

test('each periodic job has a schedule, with jitter so that no two keep coinciding', async () => {
  const { client } = temporal;
  await putSchedules(client, 'host-3');
  const schedules = [
    ['reconcile-host-3', 'reconcileHost', 300_000],
    ['roll-up-usage', 'rollUpUsage', 60_000],
    ['expire-holds', 'expireHolds', 30_000],
    ['check-ledger', 'checkLedger', 3_600_000],
    ['enforce-retention', 'enforceRetention', 3_600_000],
    ['reconcile-billing', 'reconcileBilling', 3_600_000],
  ] as const;
  for (const [id, workflowType, every] of schedules) {
    const { action, spec } = await client.schedule.getHandle(id).describe();
    expect(action).toMatchObject({ workflowType });
    expect({ id, spec }).toMatchObject({ id, spec: { intervals: [{ every }] } });
    expect(spec.jitter).toBeGreaterThanOrEqual(every / 20);
    // A pass that never ended would block the next one.
    expect(action.workflowExecutionTimeout).toBeDefined();
  }
});

test('putting a changed schedule row changes the schedule', async () => {
  const { client } = temporal;
  const row = {
    id: 'usage-by-the-day',
    workflow: 'rollUpUsage' as const,
    args: [] as [],
    everyMs: 60_000,
    overlap: ScheduleOverlapPolicy.SKIP,
  };
  await putSchedule(client, row);
  await putSchedule(client, { ...row, everyMs: 24 * 60 * 60_000, runTimeoutMs: 60_000 });
  const { action, spec } = await client.schedule.getHandle(row.id).describe();
  expect(spec.intervals).toMatchObject([{ every: 24 * 60 * 60_000 }]);
  expect(action).toMatchObject({ workflowType: 'rollUpUsage', workflowExecutionTimeout: 60_000 });
});

test('a paused schedule stays paused and starts no run when a worker starts', async () => {
  const { client } = temporal;
  await putSchedules(client, 'host-2');
  const schedule = client.schedule.getHandle('reconcile-host-2');
  const runs = async () => (await schedule.describe()).info.numActionsTaken;
  await until(async () => (await runs()) === 1);
  await schedule.pause('its disk is being checked');
  const { info: before } = await schedule.describe();
  await putSchedules(client, 'host-2');
  // A run queued before this trigger has been skipped by then, because the first run is still in
  // progress. Two triggers in the same second have the same workflow id and count as one.
  await until(async () => {
    await schedule.trigger(ScheduleOverlapPolicy.ALLOW_ALL);
    return (await runs()) > 1;
  });
  const { info, state } = await schedule.describe();
  expect(state).toMatchObject({ paused: true, note: 'its disk is being checked' });
  expect(info.numActionsSkippedOverlap).toBe(before.numActionsSkippedOverlap);
});
