import { randomUUID } from 'node:crypto';
import { Worker } from '@temporalio/worker';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { DatabaseGate, GatedSlots, gatedTuner } from '../../worker/database-gate.js';
import { until } from '../support/until.js';
import { keptLog } from '../support/platform-environment.js';
import { testTemporal, workflowCode, type TestTemporal } from '../support/temporal.js';

const TASK_QUEUE = 'gated';

let temporal: TestTemporal;
beforeAll(async () => {
  temporal = await testTemporal();
});
afterAll(() => temporal?.close());

/** Creates a gate that is closed because its database is unreachable. */
async function gateOfOneAway() {
  const { log, lines } = keptLog();
  let isAway = true;
  const ping = () => (isAway ? Promise.reject(new Error('no connection')) : Promise.resolve());
  const gate = new DatabaseGate();
  const stop = new AbortController();
  const keeping = gate.keep({ ping }, log, stop.signal, 50);
  await until(() => Promise.resolve(!gate.isOpen));
  return {
    gate,
    lines,
    comesBack: () => {
      isAway = false;
    },
    end: async () => {
      stop.abort();
      await keeping;
    },
  };
}

test('a worker polls no workflow task while its database is unreachable', async () => {
  const { client, connection, namespace } = temporal;
  const { comesBack, end, gate, lines } = await gateOfOneAway();
  expect(new GatedSlots(gate, 1).tryReserveSlot()).toBeNull();

  const worker = await Worker.create({
    connection,
    namespace,
    taskQueue: TASK_QUEUE,
    tuner: gatedTuner(gate),
    ...(await workflowCode()),
    activities: { rollUpUsage: () => 7 },
  });
  await worker.runUntil(async () => {
    const workflowId = randomUUID();
    const handle = await client.workflow.start('rollUpUsage', {
      workflowId,
      taskQueue: TASK_QUEUE,
    });
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    const { raw, status } = await handle.describe();
    expect(status.name).toBe('RUNNING');
    expect(raw.pendingWorkflowTask?.startedTime ?? null).toBeNull();

    comesBack();
    expect(await handle.result()).toEqual({ rolledUp: 7 });
  });
  await end();
  expect(lines.map((line) => JSON.parse(line).msg)).toEqual([
    'no database: this worker polls no workflows',
    'the database is available again: this worker polls workflows again',
  ]);
});

test('a worker polls no activity task while its database is unreachable', async () => {
  const { client, connection, namespace } = temporal;
  const taskQueue = 'gated-activities';
  const { comesBack, end, gate } = await gateOfOneAway();

  const site = { connection, namespace, taskQueue };
  const other = await Worker.create({ ...site, ...(await workflowCode()) });
  let taken = 0;
  const activities = { rollUpUsage: () => ++taken };
  const worker = await Worker.create({ ...site, activities, tuner: gatedTuner(gate) });
  await other.runUntil(() =>
    worker.runUntil(async () => {
      const workflowId = randomUUID();
      const handle = await client.workflow.start('rollUpUsage', { workflowId, taskQueue });
      const isAsked = async () => (await handle.describe()).raw.pendingActivities?.length === 1;
      await until(async () => taken > 0 || (await isAsked()));
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      expect(taken).toBe(0);

      comesBack();
      expect(await handle.result()).toEqual({ rolledUp: 1 });
    }),
  );
  await end();
});

test('a database that does not answer counts as unreachable', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const gate = new DatabaseGate();
  const stop = new AbortController();
  const keeping = gate.keep({ ping: () => new Promise(() => {}) }, keptLog().log, stop.signal);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(gate.isOpen).toBe(false);
  stop.abort();
  await keeping;
});

test('slots are limited, and a wait for one ends with the worker', async () => {
  const supplier = new GatedSlots(new DatabaseGate(), 100);
  const context = {} as Parameters<typeof supplier.reserveSlot>[0]; // unused by the supplier
  const ending = new AbortController();
  const permits = await Promise.all(
    Array.from({ length: 100 }, () => supplier.reserveSlot(context, ending.signal)),
  );
  expect(supplier.tryReserveSlot()).toBeNull();
  const next = supplier.reserveSlot(context, ending.signal);
  expect(permits).toHaveLength(100);
  supplier.releaseSlot();
  await next;
  const waiting = supplier.reserveSlot(context, ending.signal);
  ending.abort();
  await expect(waiting).rejects.toThrow();
});
