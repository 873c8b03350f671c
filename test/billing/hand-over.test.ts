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

test('a payment reported while Temporal is away is answered with 200 and credited afterwards', async () => {
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
    activities: createBillingActivities(new ProcessorEventEffects(db), site.readings),
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
