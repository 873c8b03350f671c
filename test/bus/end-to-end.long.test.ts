import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { busMessageRuns } from '../../temporal/row-runs.js';
import { handOverPeriodically } from '../../worker/hand-over.js';
import { busMessages } from '../../worker/handed-rows.js';
import { startAccountWorkers } from '../support/account-workers.js';
import { textsOfHistories } from '../support/histories.js';
import { testTemporal, workerLog, type TestTemporal } from '../support/temporal.js';
import { busSite, type BusSite } from './support.js';

const MARK = 'a-text-of-the-payload';

let site: BusSite;
let temporal: TestTemporal;
let hook: string;
let slowHook: string;
let stopWorkers = () => Promise.resolve();
const stop = new AbortController();
let handing: Promise<void>;

const arrivals: { readonly messageId: string; readonly at: number }[] = [];
let failing = 0;
const server = http.createServer((request, response) => {
  request.resume();
  arrivals.push({ messageId: String(request.headers['x-bus-message-id']), at: performance.now() });
  response.writeHead(failing-- > 0 ? 500 : 200).end();
});

/** Another host than that of the receiver that answers: deliveries to one host share a limit. */
const SLOW_HOST = '127.0.0.2';
let withheld = 0;
/** A receiver that does not answer. */
const slow = http.createServer((request) => {
  request.resume();
  withheld++;
});

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  hook = `http://127.0.0.1:${port}/hook`;
  slow.listen(0, SLOW_HOST);
  await once(slow, 'listening');
  const { port: slowPort } = slow.address() as AddressInfo;
  slowHook = `http://${SLOW_HOST}:${slowPort}/hook`;
  [site, temporal] = await Promise.all([
    busSite({ OUTBOUND_ALLOW: `127.0.0.1:${port},${SLOW_HOST}:${slowPort}` }),
    testTemporal(),
  ]);
  const { database, log, settings } = site.dependencies;
  stopWorkers = await startAccountWorkers({ settings, database, temporal, log });
  const rows = busMessages(busMessageRuns(temporal.client));
  handing = handOverPeriodically({ database, log }, rows, stop.signal);
});
afterAll(async () => {
  stop.abort();
  await handing;
  await stopWorkers();
  await site?.close();
  await temporal?.close();
  await new Promise((resolve) => server.close(resolve));
  await new Promise((resolve) => slow.close(resolve));
});

async function pair(url = hook) {
  const [from, to] = [await site.agent(), await site.agent()];
  const path = `/api/underground/webhooks/${to.id}`;
  const put = await site.backend(to.owner, 'PUT', path, { body: { url } });
  expect(put.status).toBe(200);
  return { from, to };
}

const statusOf = async (messageId: string) => {
  const [row] = await site.rows<{ status: string; id: string }>(
    `SELECT status, id FROM bus_messages WHERE message_id = '${messageId}'`,
  );
  return row;
};

test('a worker delivers messages of a pair in their order', async () => {
  const { from, to } = await pair();
  failing = 1;
  const sent: string[] = [];
  for (let n = 0; n < 5; n++) {
    const { answer, message } = await site.send(from, to, {
      action: 'BOOKING_REQUEST',
      payload: { bookingId: `b${n}`, note: MARK },
    });
    expect(answer.status).toBe(200);
    sent.push(message.messageId);
  }
  await expect.poll(async () => (await statusOf(sent[4] ?? ''))?.status).toBe('delivered');
  await expect.poll(async () => (await statusOf(sent[0] ?? ''))?.status).toBe('delivered');
  const first = sent.map((id) => arrivals.findIndex(({ messageId }) => messageId === id));
  expect(first).toEqual(first.toSorted((one, other) => one - other));
  // The first message was refused once, and was sent again under its id.
  expect(arrivals.filter(({ messageId }) => messageId === sent[0])).toHaveLength(2);
  const threads = await site.rows(`SELECT state FROM bus_threads WHERE last_by = '${from.id}'`);
  expect(threads).toHaveLength(5);

  const row = await statusOf(sent[0] ?? '');
  const handle = temporal.client.workflow.getHandle(`bus-message-${row?.id}`);
  expect((await handle.describe()).status.name).toBe('COMPLETED');
});

test('a message arrives soon after it was accepted', async () => {
  const times: number[] = [];
  const pairs = await Promise.all(Array.from({ length: 5 }, pair));
  for (const { from, to } of pairs) {
    for (let n = 0; n < 6; n++) {
      const { message } = await site.send(from, to, { payload: { note: MARK } });
      const accepted = performance.now();
      const found = () => arrivals.find(({ messageId }) => messageId === message.messageId);
      await expect.poll(found, { interval: 5 }).toBeDefined();
      times.push((found()?.at ?? Infinity) - accepted);
    }
  }
  times.sort((one, other) => one - other);
  expect(times[Math.floor(times.length / 2)]).toBeLessThan(1_000);
});

test('an unresponsive receiver delays no message to other receivers', async () => {
  const { to: silent } = await pair(slowHook);
  const { from, to } = await pair();
  // More than one host has places and waiting places: the rest is refused and tried again.
  const senders = await Promise.all(Array.from({ length: 25 }, () => site.agent()));
  for (const sender of senders) await site.send(sender, silent);
  await expect.poll(() => withheld).toBe(10);
  const { message } = await site.send(from, to);
  const arrived = () => arrivals.some(({ messageId }) => messageId === message.messageId);
  await expect.poll(arrived, { interval: 20 }).toBe(true);
  const tried = await site.rows(
    `SELECT FROM bus_messages WHERE to_agent = '${silent.id}' AND attempts <> '[]'`,
  );
  expect(tried).toEqual([]);
  slow.closeAllConnections();
});

test('no history and no log has a payload', { tags: 'attack' }, async () => {
  // A run is listed shortly after its start.
  await expect.poll(async () => (await textsOfHistories(temporal.client)).runs).toBeGreaterThan(30);
  const { texts } = await textsOfHistories(temporal.client);
  const kept = [...texts, ...site.logged, ...workerLog].join('\n');
  expect(kept).toContain('postBusMessage');
  expect(kept).not.toContain(MARK);
});
