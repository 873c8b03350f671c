import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeBusAgents, signedMessage, type BusAgent } from '../../bench/support/bus-agents.js';
import type { AtEnd } from '../../bench/support/cleanups.js';
import { Client } from '../../bench/support/client.js';
import { BenchPlatform } from '../../bench/support/platform.js';
import {
  startPaymentProcessor,
  type PaymentProcessor,
} from '../../dev/billing/payment-processor.js';
import { Database } from '../../src/platform/database/database.js';
import { balanceOf, creditsOf } from '../../src/money/ledger/ledger.js';
import { CENT } from '../../src/types/money.js';
import { startBusReceiver, type BusReceiver } from '../chaos/bus-receiver.js';
import { stopWhereItIs } from '../chaos/pauses.js';
import { buildPrograms } from '../support/run-program.js';

/** Milliseconds for which Temporal is unavailable. */
const AWAY_MS = 60_000;

/** Milliseconds between two purchases, and between two messages. */
const EVERY_MS = 5_000;

/** Milliseconds until all is done after that. */
const DONE_MS = 120_000;

const CENTS = 500;

const cleanups: Parameters<AtEnd>[0][] = [];
const atEnd: AtEnd = (cleanup) => cleanups.push(cleanup);

let platform: BenchPlatform;
let processor: PaymentProcessor;
let receiver: BusReceiver;
let database: Database;
let backend: Client;
let agents: BusAgent[];

beforeAll(async () => {
  await buildPrograms();
  processor = await startPaymentProcessor();
  atEnd(() => processor.close());
  receiver = await startBusReceiver(atEnd);
  const env = { ...processor.env, OUTBOUND_ALLOW: receiver.host };
  platform = await BenchPlatform.withoutContainers(atEnd, env);
  database = new Database(platform.databaseUrl, { maxConnections: 2 });
  atEnd(() => database.close());
  backend = new Client(platform.backendUrl, { authorization: `Bearer ${platform.internalApiKey}` });
  atEnd(() => backend.close());
  agents = await makeBusAgents(platform.databaseUrl, 2);
  const path = `/api/underground/webhooks/${agents[1]?.id}`;
  await backend.json('PUT', path, { url: receiver.url });
});
afterAll(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

/** Registers a user and signs in. */
async function buyer(): Promise<{ readonly id: string; readonly web: Client }> {
  const web = new Client(platform.webUrl, {});
  const [email, password] = [`${randomUUID()}@example.org`, randomUUID()];
  const { id } = await web.json<{ id: string }>('POST', '/api/register', { email, password });
  const { headers } = await web.send('POST', '/api/auth/login', { email, password });
  web.close();
  const signedIn = new Client(platform.webUrl, {
    cookie: headers['set-cookie']?.[0]?.split(';')[0] ?? '',
  });
  atEnd(() => signedIn.close());
  return { id, web: signedIn };
}

test('events and messages are accepted while Temporal is unavailable for a minute, and processed afterwards', async () => {
  const { id, web } = await buyer();
  const credits = async () =>
    (await balanceOf(database.asPlatform(), creditsOf(id), 'usd')).balance;
  const [from, to] = agents;
  if (!from || !to) throw new RangeError('There must be two agents');
  const pid = await platform.livingPidOf('temporal');
  if (pid === undefined) throw new Error('Temporal does not run');

  const statuses: number[] = [];
  const sent: string[] = [];
  let paid = 0n;
  const goOn = await stopWhereItIs(pid);
  try {
    const began = performance.now();
    while (performance.now() - began < AWAY_MS) {
      const path = `/api/wallet/top-up?amount=${CENTS}`;
      const { sessionId } = await web.json<{ sessionId: string }>('GET', path);
      processor.pay(sessionId);
      paid += BigInt(CENTS) * CENT;
      const { body, headers } = processor.signed(processor.events.at(-1) ?? {});
      const url = `${platform.webUrl}/api/wallet/top-up`;
      const signal = AbortSignal.timeout(10_000);
      statuses.push((await fetch(url, { method: 'POST', headers, body, signal })).status);

      const message = await signedMessage(from, to);
      const send = '/api/underground/bus/send';
      statuses.push((await backend.send('POST', send, JSON.parse(message.body))).status);
      sent.push(message.messageId);
      await delay(EVERY_MS);
    }
    expect(new Set(statuses)).toEqual(new Set([200]));
    // Temporal was unavailable: no work was done.
    expect(await credits()).toBe(0n);
    expect(receiver.taken.size).toBe(0);
  } finally {
    goOn();
  }
  await expect.poll(credits, { timeout: DONE_MS }).toBe(paid);
  const taken = () => sent.filter((messageId) => receiver.taken.has(messageId)).length;
  await expect.poll(taken, { timeout: DONE_MS }).toBe(sent.length);
  const open = () =>
    database.asPlatform().query(
      `SELECT FROM bus_messages WHERE status <> 'delivered'
          UNION ALL SELECT FROM processor_events WHERE outcome IS DISTINCT FROM 'booked'`,
    );
  await expect.poll(open, { timeout: DONE_MS }).toEqual([]);
});
