import { randomBytes } from 'node:crypto';
import { Client } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { reconcileHostId } from '../../workflows/ids.js';
import { prepareSearchAttributes, prepareTemporal } from '../../worker/prepare-temporal.js';
import { until } from '../support/until.js';
import { keptLog } from '../support/platform-environment.js';
import { testTemporal, type TestTemporal } from '../support/temporal.js';

let temporal: TestTemporal;
const namespace = `late-${randomBytes(6).toString('hex')}`;

beforeAll(async () => {
  temporal = await testTemporal();
});
afterAll(async () => {
  await temporal?.connection.operatorService.deleteNamespace({ namespace });
  await temporal?.close();
});

test('a failed preparation of Temporal is logged and retried until it succeeds', async () => {
  const { connection } = temporal;
  const client = new Client({ connection, namespace });
  const { log, lines } = keptLog();
  const wanted = { connection, client, namespace, host: 'late', log };
  // The namespace does not exist yet.
  expect(await prepareSearchAttributes(wanted)).toBe(false);
  expect(lines.join()).toContain('create missing ones by hand, of type Keyword');

  const stop = new AbortController();
  const preparing = prepareTemporal(wanted, stop.signal, [100, 1_000]);
  await until(
    () => Promise.resolve(lines.join().includes('The schedules could not be created')),
    30_000,
  );
  await connection.workflowService.registerNamespace({
    namespace,
    workflowExecutionRetentionPeriod: msToTs('1 day'),
  });
  await until(async () => {
    const { customAttributes } = await connection.operatorService
      .listSearchAttributes({ namespace })
      .catch(() => ({ customAttributes: {} }));
    return 'AgentId' in customAttributes;
  });
  const schedule = client.schedule.getHandle(reconcileHostId('late'));
  const isThere = () => schedule.describe().catch(() => false);
  await until(isThere);

  // Simulates the loss of Temporal's store while the worker runs.
  const chance = vi.spyOn(Math, 'random');
  await schedule.delete();
  await until(isThere);
  const isReported = () =>
    Promise.resolve(lines.join().includes('Temporal had lost its schedules'));
  await until(isReported);
  await expect.poll(() => chance).toHaveBeenCalled();
  stop.abort();
  await preparing;
});
