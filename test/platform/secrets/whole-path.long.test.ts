// @module-tag attack
import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  startPaymentProcessor,
  type PaymentProcessor,
} from '../../../dev/billing/payment-processor.js';
import { grantPlan } from '../../../src/accounts/accounts/subscriptions.js';
import { BusSigner } from '../../../src/bus/bus-signer.js';
import { openKey } from '../../../src/money/wallets/open-key.js';
import { busMessageRuns, processorEventRuns } from '../../../temporal/row-runs.js';
import { handOverPeriodically, type Handed } from '../../../worker/hand-over.js';
import { busMessages, busSignatures, processorEvents } from '../../../worker/handed-rows.js';
import { busSite, type BusAgent, type BusSite } from '../../bus/support.js';
import { startAccountWorkers } from '../../support/account-workers.js';
import { startAiProviders, type AiProviders } from '../../support/ai-providers.js';
import { textsOfHistories } from '../../support/histories.js';
import { testTemporal, workerLog, type TestTemporal } from '../../support/temporal.js';
import { textsOfRows } from '../database/traces.js';

const TOP_UP = '/api/wallet/top-up';

const PAYLOAD = 'a-text-of-the-payload';
const GATEWAY = 'password-of-the-x402-gateway';
const IN_QUERY = 'key-in-the-query-of-the-gateway';
const OWN_KEY = 'sk-own-key-that-the-provider-accepts';
const REFUSED_KEY = 'sk-own-key-that-the-provider-refuses';

/** Secrets by their names; further ones are added when they are made. */
const secrets = new Map([
  ['payload of a message', PAYLOAD],
  ['password of the x402 gateway', GATEWAY],
  ['key in the query of the x402 gateway', IN_QUERY],
  ['own key', OWN_KEY],
  ['refused own key', REFUSED_KEY],
]);

let site: BusSite;
let temporal: TestTemporal;
let processor: PaymentProcessor;
let providers: AiProviders;
let place: string;
let stopWorkers = () => Promise.resolve();
const stop = new AbortController();
let handing: Promise<unknown> = Promise.resolve();

/** Requests that the server below has quoted in its answers. */
let quoted = 0;
let refusals = 0;

/** A server that fails like a careless one: it quotes the whole request, credentials included. */
const careless = http.createServer((request, response) => {
  void quote(request, response);
});

async function quote(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { headers, url = '' } = request;
  const body = await text(request);
  if (url === '/cut') return void response.destroy();
  if (url === '/taken' && refusals-- <= 0) return void response.writeHead(200).end();
  quoted++;
  response
    .writeHead(url === '/gone' ? 410 : 500, { 'content-type': 'application/json' })
    .end(JSON.stringify({ error: { message: `no: ${url} ${JSON.stringify(headers)} ${body}` } }));
}

beforeAll(async () => {
  careless.listen(0, '127.0.0.1');
  await once(careless, 'listening');
  place = `127.0.0.1:${(careless.address() as AddressInfo).port}`;
  [processor, providers, temporal] = await Promise.all([
    startPaymentProcessor(),
    startAiProviders(),
    testTemporal(),
  ]);
  site = await busSite({
    ...processor.env,
    ...providers.env('openai'),
    X402_GATEWAY_URL: `http://operator:${GATEWAY}@${place}/base?key=${IN_QUERY}`,
    OUTBOUND_ALLOW: place,
  });
  for (const name of ['PAYPROC_SECRET_KEY', 'PAYPROC_WEBHOOK_SECRET']) {
    secrets.set(name, processor.env[name] ?? '');
  }
  const { database, log, secrets: box, settings } = site.dependencies;
  stopWorkers = await startAccountWorkers({ settings, database, temporal, log });
  const kept = (address: string) => openKey(database.asPlatform(), box, address);
  const handed: Handed[] = [
    processorEvents(processorEventRuns(temporal.client)),
    busMessages(busMessageRuns(temporal.client)),
    busSignatures(new BusSigner({ database, secrets: box, kept })),
  ];
  handing = Promise.all(
    handed.map((each) => handOverPeriodically({ database, log }, each, stop.signal)),
  );
});
afterAll(async () => {
  stop.abort();
  await handing;
  await stopWorkers();
  await site?.close();
  await temporal?.close();
  await processor?.close();
  await providers?.close();
  careless.closeAllConnections();
  await new Promise((resolve) => careless.close(resolve));
});

/** Buys credits, refunds a part, and causes every failure that a processor or a stranger can cause. */
async function useProcessor(): Promise<void> {
  const ada = await site.person();
  const { body } = await site.web(ada, 'GET', TOP_UP);
  const payment = processor.pay(body.sessionId);
  processor.refund(payment, 300);
  for (const event of processor.events) {
    const sent = processor.signed(event);
    expect((await site.web(undefined, 'POST', TOP_UP, sent)).status).toBe(200);
    const forged = { ...sent, body: `${sent.body} ` };
    expect((await site.web(undefined, 'POST', TOP_UP, forged)).status).toBe(400);
  }
  processor.down = 500;
  expect((await site.web(ada, 'GET', TOP_UP)).status).toBe(500);
  processor.down = undefined;
  const open = () =>
    site.rows('SELECT FROM processor_events WHERE outcome IS DISTINCT FROM $$booked$$');
  await expect.poll(open).toEqual([]);
}

/** Sends messages, signed by a stored wallet, to receivers that accept, refuse, truncate and abort them. */
async function useBus(): Promise<void> {
  const from = await keptAgent();
  for (const path of ['taken', 'gone', 'failing', 'cut']) {
    const to = await site.agent();
    const url = `http://${place}/${path}`;
    const webhook = `/api/underground/webhooks/${to.id}`;
    const put = await site.backend(to.owner, 'PUT', webhook, { body: { url } });
    expect(put.status).toBe(200);
    secrets.set(`secret of the webhook ${path}`, put.body.secret);
    refusals = path === 'taken' ? 1 : 0;
    await sendTo(from, to);
  }
  const untried = () =>
    site.rows(`SELECT FROM bus_messages WHERE attempts = '[]' OR routed_at IS NULL`);
  await expect.poll(untried).toEqual([]);
  const ended = () => site.rows(`SELECT status FROM bus_messages WHERE status <> 'queued'`);
  await expect.poll(ended).toHaveLength(2);
}

/** Returns an agent whose wallet the platform keeps. */
async function keptAgent(): Promise<Pick<BusAgent, 'id' | 'owner'>> {
  const { database, secrets: box } = site.dependencies;
  const owner = await site.person();
  await grantPlan(database, owner.id, 'network', { actor: 'test', requestId: 'test' });
  const id = await site.agentOf(owner);
  const body = { userId: owner.id, agentId: id };
  const made = await site.backend(owner, 'POST', '/api/underground/wallets', { body });
  const key = await openKey(database.asPlatform(), box, made.body.address.toLowerCase());
  secrets.set("key of an agent's wallet", key?.slice(2) ?? '');
  return { id, owner };
}

async function sendTo(from: Pick<BusAgent, 'id' | 'owner'>, to: BusAgent): Promise<void> {
  const message = {
    messageId: `to-${to.id}`,
    action: 'BOOKING_REQUEST',
    to: to.id,
    payload: { bookingId: 'b', amount: PAYLOAD, note: PAYLOAD },
    timestamp: Math.floor(Date.now() / 1_000),
  };
  const asked = { body: { agentId: from.id, message } };
  const signed = await site.backend(from.owner, 'POST', '/api/underground/bus/sign', asked);
  expect(signed.status).toBe(200);
  expect((await site.post(signed.body)).status).toBe(200);
  expect((await site.post({ ...signed.body, payload: { note: PAYLOAD } })).status).toBe(401);
}

/** Calls the x402 gateway, which quotes its credentials. */
async function useGateway(): Promise<void> {
  const ada = await site.person();
  const ask = (body: object) => site.web(ada, 'POST', '/api/x402', { body });
  const before = quoted;
  expect((await site.web(ada, 'GET', '/api/x402')).status).toBe(503);
  expect((await ask({ action: 'endpoints' })).status).toBe(500);
  const recipient = `0x${'ab'.repeat(20)}`;
  const agentId = await site.agentOf(ada);
  expect((await ask({ action: 'pay', agentId, amount: 1, recipient })).status).toBe(500);
  expect(quoted).toBe(before + 3);
}

/** Enables own keys, one of which the provider refuses, and has a call fail. */
async function useOwnKeys(): Promise<void> {
  const ada = await site.person();
  await grantPlan(site.database.db, ada.id, 'solo', { actor: 'test', requestId: 'test' });
  const enable = (apiKey: string) =>
    site.web(ada, 'POST', '/api/billing', {
      body: { action: 'enable-byok', provider: 'openai', apiKey },
    });
  providers.accepted.add(OWN_KEY);
  expect((await enable(REFUSED_KEY)).status).toBe(400);
  expect((await enable(OWN_KEY)).status).toBe(200);
  providers.behave('openai', (request, response) => {
    quoted++;
    response.writeHead(500, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { message: JSON.stringify(request.headers) } }));
  });
  const { key } = (await site.web(ada, 'POST', '/api/keys', { body: { name: 'ci' } })).body;
  const answer = await site.backend(undefined, 'POST', '/v1/chat/completions', {
    body: { model: 'openai/gpt-6-luna', messages: [{ role: 'user', content: 'hello' }] },
    headers: { authorization: `Bearer ${key}` },
  });
  expect(answer.status).toBeGreaterThanOrEqual(500);
}

test('no secret and no payload is in a log, a history, a failure or an unsealed row', async () => {
  await Promise.all([useProcessor(), useBus(), useGateway(), useOwnKeys()]);
  // A run is listed shortly after its start.
  await expect.poll(async () => (await textsOfHistories(temporal.client)).runs).toBeGreaterThan(5);
  const histories = (await textsOfHistories(temporal.client)).texts;
  const rows = await textsOfRows(site.database.db.asPlatform());
  const places = { histories, rows, logs: [...site.logged, ...workerLog] };
  // The failures are among the texts: a status in a row, its sentence in a history.
  expect(histories.join('\n')).toContain('The receiver answered with status 500');
  expect(rows.join('\n')).toContain('"status": 500');
  expect(places.logs.join('\n')).toContain('The payment processor created no checkout');
  for (const [name, secret] of secrets) {
    expect(secret.length, name).toBeGreaterThan(8);
    const encoded = [secret, Buffer.from(secret).toString('base64').replaceAll('=', '')];
    for (const [where, texts] of Object.entries(places)) {
      const found = texts.filter((each) => encoded.some((form) => each.includes(form)));
      expect(found, `${name} in ${where}`).toEqual([]);
    }
  }
});
