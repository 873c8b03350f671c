import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders, RequestListener, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { Listening } from '../../api/http/server.js';
import { createWeb } from '../../api/web/web.js';
import { databaseAlone } from '../support/dependencies.js';
import { makeAccount, signIn } from '../support/account.js';
import { call } from '../support/http.js';
import { keptLog } from '../support/platform-environment.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';
import { stub, type StubService } from './stub-service.js';
import {
  booksOf,
  creditsByKind,
  giveCredits,
  grantCredits,
  openSession,
  type TestSession,
} from './support.js';

const attack = { tags: 'attack' };

const PATH = '/api/v1/gateway';
const PRICE = 50_000n;

const json = (response: ServerResponse, status: number, said: unknown) =>
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(said));

const LISTED = [
  { slug: 'weather', description: 'Tomorrow', price: '0.05' },
  { slug: 'news.v2', price: '$1' },
  // The endpoints below are not sold.
  { slug: 'weather', description: 'Again', price: '0.01' },
  ...[
    'pay',
    'Endpoints',
    'join-colony',
    'fitness',
    'pricing',
    '../platform/health',
    'a/b',
    '',
    '.',
    7,
  ].map((slug) => ({ slug, description: '', price: '1' })),
  ...['0', '-1', 'free', '0.0000001', '100.01', 1, undefined].map((price, index) => ({
    slug: `odd-${index}`,
    description: '',
    price,
  })),
  'nothing',
];

/** A request that an endpoint received. */
interface Asked {
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

const asked: Asked[] = [];
const serve = (response: ServerResponse) => json(response, 200, { sun: true });
let answer: (response: ServerResponse) => unknown = serve;

/** Simulates the upstream of `/api/x402`. */
const upstream: RequestListener = (request, response) => {
  if (request.url === '/api/endpoints') return json(response, 200, { endpoints: LISTED });
  const { headers, url } = request;
  void text(request).then((body) => {
    asked.push({ url, headers, body });
    answer(response);
  });
};

const { lines, log } = keptLog();
const opened: { close(): Promise<unknown> }[] = [];
let database: TestDatabase;
let seller: StubService;
let web: Listening;
beforeAll(async () => {
  database = await testDatabase();
  seller = await stub(upstream);
  web = await webOver(`${seller.url}/`);
});
afterEach(() => {
  answer = serve;
  asked.length = 0;
});
afterAll(async () => {
  for (const each of opened.reverse()) await each.close();
  await seller?.close();
  await database?.close();
});

/** Starts a web API that resells the endpoints at a URL. */
async function webOver(url: string): Promise<Listening> {
  const alone = await databaseAlone(database, log, { X402_GATEWAY_URL: url });
  opened.push(alone);
  const listening = await createWeb(alone.dependencies).listen('127.0.0.1', 0);
  opened.push(listening);
  return listening;
}

const soldBy = async ({ url }: Listening) => (await call(url, 'GET', PATH)).body.plugins;

const open = () => openSession(database.db, 2n * PRICE);

const buy = (
  { headers }: Pick<TestSession, 'headers'>,
  order: {
    readonly action?: string;
    readonly input?: unknown;
    readonly key?: string;
    readonly maxPrice?: unknown;
  } = {},
  at = web,
) =>
  call(at.url, 'POST', PATH, {
    body: {
      plugin: 'x402',
      action: order.action ?? 'weather',
      input: order.input ?? {},
      maxPrice: 'maxPrice' in order ? order.maxPrice : '100',
    },
    headers: { ...headers, ...(order.key !== undefined && { 'idempotency-key': order.key }) },
  });

const unpaid = { delivered: 0n, held: 0n, left: 2n * PRICE, vouchers: [] };

test(
  "sells valid upstream endpoints at their prices beside the product's own actions",
  attack,
  async () => {
    const sold = await soldBy(web);
    expect(sold.map(({ plugin }: { plugin: string }) => plugin)).toContain('chain');
    expect(sold.filter(({ plugin }: { plugin: string }) => plugin === 'x402')).toMatchObject([
      { action: 'weather', description: 'Tomorrow', price: '0.050000', currency: 'USD' },
      { action: 'news.v2', description: '', price: '1.000000', input: { type: 'object' } },
    ]);
  },
);

test('sells at most 200 upstream endpoints', async () => {
  const endpoints = Array.from({ length: 250 }, (_, index) => ({ slug: `n${index}`, price: '1' }));
  const many = await stub((_, response) => json(response, 200, { endpoints }));
  opened.push(many);
  const sold = await soldBy(await webOver(many.url));
  expect(sold.filter(({ plugin }: { plugin: string }) => plugin === 'x402')).toHaveLength(200);
});

test('charges a successful run once and sends the seller its input and an idempotency key', async () => {
  const session = await open();
  const input = { city: 'Bern', days: [1, 2] };
  const key = randomUUID();
  const first = await buy(session, { input, key });
  expect([first.status, first.body]).toMatchObject([
    200,
    { result: { sun: true }, payment: { method: 'session', amount: '0.050000' } },
  ]);
  expect(first.headers.get('x-session-remaining')).toBe('0.050000');
  expect((await buy(session, { input, key })).body).toEqual(first.body);
  expect(asked).toHaveLength(1);
  expect([asked[0]?.url, JSON.parse(asked[0]?.body ?? '')]).toEqual(['/api/weather', input]);
  expect(asked[0]?.headers['idempotency-key']).toMatch(/^[\da-f-]{36}$/);
  expect(JSON.stringify(asked[0])).not.toContain(session.token);
  expect(await booksOf(database.db, session)).toMatchObject({
    delivered: PRICE,
    held: 0n,
    vouchers: [{ amount: PRICE }],
  });
});

test('sends the seller the first idempotency key when a request is retried, another to other sessions', async () => {
  const [session, other] = [await open(), await open()];
  const key = randomUUID();
  answer = (response) => response.destroy();
  expect((await buy(session, { key })).status).toBe(502);
  expect(await booksOf(database.db, session)).toMatchObject(unpaid);
  answer = serve;
  expect((await buy(session, { key })).status).toBe(200);
  await buy(other, { key });
  await buy(other);
  const [first, again, ...others] = asked.map(({ headers }) => headers['idempotency-key']);
  expect(again).toBe(first);
  expect(new Set([first, ...others]).size).toBe(3);
});

test("charges nothing for failed runs and hides the seller's error text", attack, async () => {
  const session = await open();
  const secret = 'inner-name.example';
  const deep = '['.repeat(200_000) + ']'.repeat(200_000);
  const typed = { 'content-type': 'application/json' };
  const answers: [(response: ServerResponse) => unknown, number][] = [
    [(response) => json(response, 400, { error: secret }), 400],
    [(response) => json(response, 422, { error: secret }), 400],
    [(response) => json(response, 402, { error: secret, accepts: [] }), 502],
    [(response) => json(response, 500, { error: secret }), 502],
    [(response) => response.writeHead(302, { location: seller.url }).end(), 502],
    [(response) => response.writeHead(200, { 'content-type': 'text/html' }).end(secret), 502],
    [(response) => response.writeHead(200, typed).end(`{"a":`), 502],
    [(response) => response.writeHead(200, typed).end(deep), 502],
    [(response) => json(response, 200, 'x'.repeat(1024 * 1024)), 502],
  ];
  for (const [next, status] of answers) {
    answer = next;
    const refused = await buy(session);
    expect([refused.status, refused.body]).toEqual([status, { error: expect.any(String) }]);
    expect(JSON.stringify(refused.body)).not.toContain(secret);
  }
  expect(asked).toHaveLength(answers.length);
  expect(await booksOf(database.db, session)).toMatchObject(unpaid);
});

test('sells nothing at a price above the maximum of the buyer', attack, async () => {
  const session = await open();
  const { body, headers, status } = await buy(session, { maxPrice: '0.049999' });
  expect([status, body]).toEqual([
    402,
    {
      error: expect.any(String),
      code: 'PRICE_ABOVE_MAXIMUM',
      price: '0.050000',
      currency: 'USD',
    },
  ]);
  expect(headers.get('x-session-remaining')).toBe('0.100000');
  expect(asked).toEqual([]);
  expect(await booksOf(database.db, session)).toMatchObject(unpaid);
  expect((await buy(session, { maxPrice: '.05' })).status).toBe(200);
});

test('demands a maximum price for actions whose prices others set', attack, async () => {
  const session = await open();
  for (const maxPrice of [undefined, null, 1, '', '-1', '1e2', '1.0000000', '0x10']) {
    const { body, status } = await buy(session, { maxPrice });
    expect([status, body]).toEqual([400, { error: expect.stringContaining('maxPrice') }]);
  }
  expect(asked).toEqual([]);
  expect(await booksOf(database.db, session)).toMatchObject(unpaid);
});

test('sends the seller no request for unpaid runs or unlisted actions', async () => {
  const session = await open();
  const exhausted = await buy(session, { action: 'news.v2' });
  expect([exhausted.status, exhausted.body]).toMatchObject([
    402,
    { code: 'SESSION_EXHAUSTED', price: '1.000000', remaining: '0.100000' },
  ]);
  const unknown = await buy(session, { action: 'pay' });
  expect([unknown.status, unknown.body]).toEqual([404, { error: 'Unknown action' }]);
  expect((await buy({ headers: {} })).body).toMatchObject({
    code: 'PAYMENT_REQUIRED',
    price: '0.050000',
  });
  expect(asked).toEqual([]);
});

test('the gateway sells its other services while the upstream list is unavailable, and requests the list once', async () => {
  for (const away of [
    (response: ServerResponse) => response.destroy(),
    (response: ServerResponse) => json(response, 500, { endpoints: LISTED }),
    (response: ServerResponse) => json(response, 200, { endpoints: 'none' }),
    (response: ServerResponse) =>
      json(response, 200, { endpoints: LISTED, more: 'x'.repeat(256 * 1024) }),
    // The upstream never answers.
    () => undefined,
  ]) {
    const posing = await stub((_, response) => away(response));
    opened.push(posing);
    const at = await webOver(posing.url);
    const session = await open();
    expect((await soldBy(at)).map(({ plugin }: { plugin: string }) => plugin)).toEqual([
      'chain',
      'ai',
    ]);
    const { body, status } = await buy(session, {}, at);
    expect([status, body]).toEqual([
      502,
      { error: 'x402 weather cannot be bought now because its price is unavailable: retry later' },
    ]);
    expect(await booksOf(database.db, session)).toMatchObject(unpaid);
    expect(posing.asked).toEqual(['/api/endpoints']);
  }
  expect(
    lines.filter((line) => line.includes("listing the x402 gateway's endpoints failed")),
  ).toHaveLength(5);
});

test(
  'an x402 run is paid only with bought credits, and the response shows the remaining ones',
  attack,
  async () => {
    const account = await makeAccount(database.db);
    const headers = { cookie: await signIn(database.db, account) };
    await grantCredits(database.db, account.id, 100n * PRICE);
    await giveCredits(database.db, account.id, PRICE - 1n);
    const refused = await buy({ headers });
    expect([refused.status, refused.body]).toEqual([
      402,
      {
        error: expect.any(String),
        code: 'CREDITS_EXHAUSTED',
        price: '0.050000',
        remaining: '0.049999',
      },
    ]);
    expect(asked).toEqual([]);
    await giveCredits(database.db, account.id, 2n);
    const bought = await buy({ headers });
    expect([bought.status, bought.body.payment.remaining]).toEqual([200, '0.000001']);
    const left = { bought: 1n, granted: 100n * PRICE, spent: PRICE };
    expect(await creditsByKind(database, account.id)).toEqual(left);
  },
);
