import { Client, Connection } from '@temporalio/client';
import { Worker } from '@temporalio/worker';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createBillingActivities } from '../../activities/billing.js';
import { ProcessorEventEffects } from '../../src/billing/apply-events.js';
import { processorEventRuns } from '../../temporal/row-runs.js';
import { processorEvents } from '../../worker/handed-rows.js';
import { handOver, handOverPeriodically } from '../../worker/hand-over.js';
import { PLATFORM_TASK_QUEUE } from '../../workflows/ids.js';
import { testTemporal, workflowCode, type TestTemporal } from '../support/temporal.js';
import { billingSite, type BillingSite } from './support.js';

let site: BillingSite;
let temporal: TestTemporal;

beforeAll(async () => {
  [site, temporal] = await Promise.all([billingSite(), testTemporal()]);
});
afterAll(async () => {
  await temporal?.close();
  await site?.close();
});

test('a payment reported while Temporal is unavailable is answered with 200 and credited afterwards', async () => {
  const { db } = site.database;
  const ada = await site.person();
  const { body } = await site.web(ada, 'GET', '/api/wallet/top-up');
  site.processor.pay(body.sessionId);
  const [event = {}] = site.processor.events;
  expect((await site.deliver(event)).status).toBe(200);

  const away = new Client({ connection: Connection.lazy({ address: '127.0.0.1:1' }) });
  await expect(handOver(db, processorEvents(processorEventRuns(away)))).rejects.toThrow();
  expect(await site.moneyOf(ada)).toMatchObject({ credits: '0.000000' });

  const { client, connection, namespace } = temporal;
  const worker = await Worker.create({
    connection,
    namespace,
    ...(await workflowCode()),
    taskQueue: PLATFORM_TASK_QUEUE,
    activities: createBillingActivities(
      new ProcessorEventEffects(db),
      site.readings,
      site.reconciliation,
    ),
  });
  await worker.runUntil(async () => {
    const ending = new AbortController();
    const parts = { database: db, log: pino({ level: 'silent' }) };
    const rows = processorEvents(processorEventRuns(client));
    const handing = handOverPeriodically(parts, rows, ending.signal);
    await expect.poll(() => site.moneyOf(ada)).toMatchObject({ credits: '10.000000' });
    ending.abort();
    await handing;
  });
  const [{ id } = { id: '' }] = await db
    .asPlatform()
    .query<{ id: string }>('SELECT id FROM processor_events');
  expect(await client.workflow.getHandle(`processor-event-${id}`).result()).toBe('booked');
});

test('a plan reported while the processor is unavailable is valid afterwards, and no secret is in the history', async () => {
  const { db } = site.database;
  const bob = await site.person();
  const body = { action: 'create-checkout', plan: 'solo' };
  const { body: checkout } = await site.web(bob, 'POST', '/api/billing', { body });
  site.processor.pay(checkout.sessionId);
  const completed = site.processor.events.at(-1) ?? {};
  site.processor.down = 401;
  expect((await site.deliver(completed)).status).toBe(200);

  const { client, connection, namespace } = temporal;
  const worker = await Worker.create({
    connection,
    namespace,
    ...(await workflowCode()),
    taskQueue: PLATFORM_TASK_QUEUE,
    activities: createBillingActivities(
      new ProcessorEventEffects(db),
      site.readings,
      site.reconciliation,
    ),
  });
  const [{ id } = { id: '' }] = await db
    .asPlatform()
    .query<{ id: string }>('SELECT id FROM processor_events WHERE applied_at IS NULL');
  const run = client.workflow.getHandle(`processor-event-${id}`);
  await worker.runUntil(async () => {
    await processorEventRuns(client).start(id);
    await expect
      .poll(async () => (await run.describe()).raw.pendingActivities?.[0]?.attempt ?? 0)
      .toBeGreaterThan(1);
    const { raw } = await run.describe();
    expect(raw.pendingActivities?.[0]?.lastFailure?.message).toBe(
      'The payment processor did not answer: retry later',
    );
    expect(JSON.stringify(raw)).not.toContain(site.processor.env.PAYPROC_SECRET_KEY);
    site.processor.down = undefined;
    expect(await run.result()).toBe('read');
  });
  expect((await site.web(bob, 'GET', '/api/billing')).body).toMatchObject({ plan: 'solo' });
  const history = JSON.stringify(await run.fetchHistory());
  for (const secret of Object.values(site.processor.env)) expect(history).not.toContain(secret);
});
