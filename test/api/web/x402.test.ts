import { randomUUID } from 'node:crypto';
import type {
  IncomingHttpHeaders,
  IncomingMessage,
  RequestListener,
  ServerResponse,
} from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Listening } from '../../../api/http/server.js';
import { createWeb } from '../../../api/web/web.js';
import { stub, type StubService } from '../../gateway/stub-service.js';
import { makeAgent } from '../../money/splits/support.js';
import { makeAccount, signIn, type TestAccount } from '../../support/account.js';
import { databaseAlone } from '../../support/dependencies.js';
import { call, newAddress, type CallOptions } from '../../support/http.js';
import { keptLog } from '../../support/platform-environment.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

const attack = { tags: 'attack' };

const PATH = '/api/x402';
const CREDENTIALS = 'operator:of-the-gateway';

/** A request that the gateway received. */
interface Asked {
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly fields: unknown;
}

const json = (response: ServerResponse, status: number, said: unknown) =>
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(said));

const ENDPOINTS = { endpoints: [{ slug: 'weather', description: 'Tomorrow', price: '0.05' }] };
const FITNESS = { score: 87.5, tier: 'gold', details: { prediction: 1, execution: 0.5 } };
const PRICING = {
  agentId: 'an-agent',
  tier: 'gold',
  pricing: { rate: 0.9, discount: 10 },
  fitness: { score: 87.5, tier: 'gold' },
};

const ANSWERS: Readonly<Record<string, unknown>> = {
  '/base/health?key=hidden': { status: 'healthy', gateway: 'mine', uptime: 7, parts: { db: 'ok' } },
  '/base/api/endpoints?key=hidden': ENDPOINTS,
  '/base/api/fitness?key=hidden': FITNESS,
  '/base/api/pricing?key=hidden': PRICING,
  '/base/api/join-colony?key=hidden': { joined: true, rank: [1, null, 'x'] },
};

const asked: Asked[] = [];
const serve = (response: ServerResponse, path = '') => json(response, 200, ANSWERS[path]);
let answer: (response: ServerResponse, path?: string) => unknown = serve;

const upstream: RequestListener = (request: IncomingMessage, response) => {
  const { headers, url: path } = request;
  void text(request).then((body) => {
    asked.push({ path, headers, fields: body === '' ? undefined : JSON.parse(body) });
    answer(response, path);
  });
};

const { lines, log } = keptLog();
const opened: { close(): Promise<unknown> }[] = [];
let database: TestDatabase;
let gateway: StubService;
let web: Listening;
let ada: TestAccount;
let cookie: string;
let agentId: string;
let othersAgent: string;

beforeAll(async () => {
  database = await testDatabase();
  gateway = await stub(upstream);
  opened.push(gateway);
  web = await webOver(`http://${CREDENTIALS}@${gateway.place}/base?key=hidden`);
  ada = await makeAccount(database.db);
  cookie = await signIn(database.db, ada);
  agentId = await makeAgent(database.db, ada.id);
  othersAgent = await makeAgent(database.db, (await makeAccount(database.db)).id);
});
afterEach(() => {
  answer = serve;
  asked.length = 0;
});
afterAll(async () => {
  for (const each of opened.reverse()) await each.close();
  await database?.close();
});

async function webOver(url: string | undefined): Promise<Listening> {
  const env = { X402_GATEWAY_URL: url, TRUSTED_PROXIES: '127.0.0.1' };
  const alone = await databaseAlone(database, log, env);
  opened.push(alone);
  const listening = await createWeb(alone.dependencies).listen('127.0.0.1', 0);
  opened.push(listening);
  return listening;
}

/** Sends a request without credentials. */
const ask = (body: unknown, { headers, ...options }: CallOptions = {}, at = web) =>
  call(at.url, 'POST', PATH, { ...options, body, ...(headers && { headers }) });

const askAsAda = (body: unknown, headers: Readonly<Record<string, string>> = {}, at = web) =>
  ask(body, { headers: { cookie, ...headers } }, at);

const health = (at = web) => call(at.url, 'GET', PATH);

const PAYMENT = { amount: 5, recipient: `0x${'aB'.repeat(20)}` };

/** Answers of a gateway that fails, by how it fails. */
const FAILURES: Readonly<Record<string, (response: ServerResponse) => unknown>> = {
  'a server error': (response) => json(response, 500, { error: 'inner-name.example' }),
  'a refusal': (response) => json(response, 402, { error: 'inner-name.example' }),
  'a redirect': (response) => response.writeHead(302, { location: gateway.url }).end(),
  'no JSON': (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('hello'),
  'half of a JSON object': (response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"endpoints": ['),
  'an end of the connection': (response) => response.destroy(),
  'an end amid the answer': (response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1_000 });
    response.write('{', () => response.destroy());
  },
  'more than 1 MiB': (response) =>
    json(response, 200, { ...ENDPOINTS, ...FITNESS, ...PRICING, more: 'x'.repeat(1024 * 1024) }),
  'endless nesting': (response) => {
    const depth = 200_000;
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(`{"status": "ok", "x": ${'['.repeat(depth)}${']'.repeat(depth)}}`);
  },
  'an array': (response) => json(response, 200, [ENDPOINTS]),
};

describe('GET /api/x402', () => {
  test("answers the gateway's health with its address", async () => {
    const { body, status } = await health();
    expect([status, body]).toEqual([
      200,
      { gateway: gateway.url, status: 'healthy', uptime: 7, parts: { db: 'ok' } },
    ]);
  });

  test("names the status ok if the gateway's health has none", async () => {
    answer = (response) => json(response, 200, {});
    expect((await health()).body).toEqual({ gateway: gateway.url, status: 'ok' });
  });

  test('GET /api/x402 is not cached', async () => {
    await health();
    await health();
    expect(asked).toHaveLength(2);
  });

  test.each(Object.entries(FAILURES))('answers 503 for %s', async (_name, failure) => {
    answer = failure;
    const { body, status } = await health();
    expect([status, body]).toEqual([
      503,
      { gateway: gateway.url, status: 'unreachable', error: expect.stringMatching(/./) },
    ]);
    expect(body.error).not.toContain('inner-name');
  });

  test('answers 503 with the reason for a gateway that refuses connections', async () => {
    const { body, status } = await health(await webOver('http://127.0.0.1:1'));
    expect([status, body]).toEqual([
      503,
      {
        gateway: 'http://127.0.0.1:1',
        status: 'unreachable',
        error: expect.stringContaining('ECONNREFUSED'),
      },
    ]);
  });

  test('answers 503 without a gateway', async () => {
    const { body, status } = await health(await webOver(undefined));
    expect([status, body]).toEqual([
      503,
      { gateway: null, status: 'unreachable', error: 'X402_GATEWAY_URL is not set' },
    ]);
  });

  test(
    "shows neither credentials nor path nor query of the gateway's address",
    attack,
    async () => {
      for (const each of [serve, ...Object.values(FAILURES)]) {
        answer = each;
        const answers = [await health(), await askAsAda({ action: 'endpoints' })];
        for (const { text: shown } of answers) {
          expect(shown).not.toMatch(/operator|of-the-gateway|base|hidden/);
        }
      }
      const sent = `Basic ${Buffer.from(CREDENTIALS).toString('base64')}`;
      expect(new Set(asked.map(({ headers }) => headers.authorization))).toEqual(new Set([sent]));
      expect(lines.join('')).not.toMatch(/of-the-gateway|hidden/);
    },
  );

  test(
    'GET /api/x402 is limited to 60 requests of an address a minute, apart from POST',
    attack,
    async () => {
      const from = newAddress();
      const get = () => call(web.url, 'GET', PATH, { from });
      const post = () => ask({ action: 'endpoints' }, { from });
      for (const send of [get, post]) {
        const admitted = await Promise.all(Array.from({ length: 60 }, send));
        expect(new Set(admitted.map(({ status }) => status))).toEqual(new Set([200]));
        expect(await send()).toMatchObject({
          status: 429,
          body: { error: 'Too many requests, please slow down.' },
        });
      }
      expect((await post()).body.success).toBe(false);
    },
  );
});

describe('POST /api/x402', () => {
  test('lists the endpoints for any client', async () => {
    const { body, status } = await ask({ action: 'endpoints' });
    expect([status, body]).toEqual([200, ENDPOINTS]);
    expect(asked).toMatchObject([{ path: '/base/api/endpoints?key=hidden', fields: undefined }]);
  });

  test("answers an agent's fitness and pricing only from its id", async () => {
    for (const [action, said] of [
      ['fitness', FITNESS],
      ['pricing', PRICING],
    ]) {
      const { body, status } = await askAsAda({ action, agentId: 'an-agent', walletAddress: 'x' });
      expect([status, body]).toEqual([200, said]);
    }
    expect(asked).toMatchObject(
      ['fitness', 'pricing'].map((action) => ({
        path: `/base/api/${action}?key=hidden`,
        fields: { agentId: 'an-agent' },
        headers: { 'idempotency-key': expect.stringMatching(/^[\da-f-]{36}$/) },
      })),
    );
  });

  test("makes a user's agent join the colony, and returns the gateway's answer", async () => {
    const fields = { agentId, walletAddress: 'any text' };
    const { body, status } = await askAsAda({ action: 'join-colony', ...fields, amount: 3 });
    expect([status, body]).toEqual([200, { joined: true, rank: [1, null, 'x'] }]);
    expect(asked).toMatchObject([{ path: '/base/api/join-colony?key=hidden', fields }]);
  });

  test('removes fields that the contract does not have', async () => {
    answer = (response) =>
      json(response, 200, { endpoints: [{ ...ENDPOINTS.endpoints[0], secret: 1 }], secret: 1 });
    expect((await ask({ action: 'endpoints' })).body).toEqual(ENDPOINTS);
  });

  test('repeats the first answer for an Idempotency-Key, which differs from user to user', async () => {
    const key = { 'idempotency-key': randomUUID() };
    const order = { action: 'fitness', agentId };
    const first = await askAsAda(order, key);
    const again = await askAsAda(order, key);
    expect([again.status, again.body]).toEqual([200, first.body]);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    const bobs = await signIn(database.db, await makeAccount(database.db));
    await ask(order, { headers: { ...key, cookie: bobs } });
    expect(asked).toHaveLength(2);
    expect(new Set(asked.map(({ headers }) => headers['idempotency-key'])).size).toBe(2);
  });

  const ACTION = 'Invalid action. Use: join-colony, fitness, pricing, endpoints, or pay';
  const LIMIT = 'Amount exceeds $100 limit. Contact support for higher limits.';
  const pay = { action: 'pay', agentId: 'an-agent', ...PAYMENT };

  test.each<[string, unknown]>([
    [ACTION, {}],
    [ACTION, { action: 'Pay' }],
    [ACTION, { action: 7 }],
    [ACTION, { action: null, agentId: 'x' }],
    ['agentId required', { action: 'fitness' }],
    ['agentId required', { action: 'pricing', agentId: '' }],
    ['agentId required', { action: 'join-colony', agentId: ' ' }],
    ['agentId required', { action: 'pay', agentId: 7 }],
    ['agentId must be at most 255 characters', { action: 'fitness', agentId: 'x'.repeat(256) }],
    ['walletAddress required', { action: 'join-colony', agentId: 'x' }],
    ['walletAddress required', { action: 'join-colony', agentId: 'x', walletAddress: 7 }],
    ['Invalid amount', { action: 'pay', agentId: 'x' }],
    ['Invalid amount', { ...pay, amount: 0 }],
    ['Invalid amount', { ...pay, amount: -1 }],
    ['Invalid amount', { ...pay, amount: '5' }],
    ['Invalid amount', { ...pay, amount: null }],
    ['Invalid amount', { ...pay, amount: 0.000_000_49 }],
    [LIMIT, { ...pay, amount: 100.000_001 }],
    [LIMIT, { ...pay, amount: 101, recipient: undefined }],
    ['Recipient required', { ...pay, recipient: undefined }],
    ['Recipient required', { ...pay, recipient: '' }],
    ['Recipient required', { ...pay, recipient: 7 }],
    ...[
      'nobody',
      `0x${'1'.repeat(39)}`,
      `0x${'1'.repeat(41)}`,
      `0X${'1'.repeat(40)}`,
      `0x${'g'.repeat(40)}`,
      `${'1'.repeat(31)}`,
      `${'1'.repeat(45)}`,
      ...['0', 'O', 'I', 'l'].map((letter) => letter + '1'.repeat(34)),
      ` ${'1'.repeat(34)}`,
    ].map((recipient): [string, unknown] => ['Invalid recipient address', { ...pay, recipient }]),
    ['currency must be text', { ...pay, currency: 7 }],
    ['endpoint must be text', { ...pay, endpoint: {} }],
    ['method must be text', { ...pay, method: null }],
  ])('answers 400 "%s" for %j', async (error, body) => {
    const { body: said, status } = await askAsAda(body);
    expect([status, said]).toEqual([400, { success: false, error }]);
    expect(asked).toEqual([]);
  });

  test('checks the body, then the session, then the fields', async () => {
    const broken = await ask('{');
    expect([broken.status, broken.body]).toEqual([
      400,
      { success: false, error: 'Request body is not valid JSON' },
    ]);
    for (const body of [{}, { action: 'fitness' }, pay, { action: 7 }]) {
      const { body: said, status } = await ask(body);
      expect([status, said]).toEqual([401, { success: false, error: 'Authentication required' }]);
    }
    expect(asked).toEqual([]);
  });

  test('accepts no API key', attack, async () => {
    const made = await call(web.url, 'POST', '/api/keys', {
      body: { name: 'a key' },
      headers: { cookie },
    });
    const headers = { cookie, authorization: `Bearer ${made.body.key}` };
    const { body, status } = await ask({ action: 'fitness', agentId }, { headers });
    expect([status, body]).toEqual([401, { success: false, error: 'Authentication required' }]);
  });

  test("demands the CSRF token of a request from another site's page", attack, async () => {
    const headers = { cookie, origin: 'https://elsewhere.example' };
    const { body, status } = await ask({ action: 'fitness', agentId }, { headers });
    expect([status, body]).toMatchObject([403, { success: false, code: 'CSRF_TOKEN_REQUIRED' }]);
  });

  test("answers 404 for another user's agent, after all other checks", attack, async () => {
    const order = { action: 'join-colony', agentId: othersAgent, walletAddress: 'x' };
    for (const id of [othersAgent, randomUUID()]) {
      const { body, status } = await askAsAda({ ...order, agentId: id });
      expect([status, body]).toEqual([404, { success: false, error: 'Agent not found' }]);
    }
    expect((await askAsAda({ ...order, walletAddress: '' })).status).toBe(400);
    expect(asked).toEqual([]);
  });

  test.each(Object.entries(FAILURES))(
    "answers 500 for %s of the gateway, without the gateway's text",
    async (_name, failure) => {
      answer = failure;
      for (const body of [
        { action: 'endpoints' },
        { action: 'fitness', agentId },
        { action: 'pricing', agentId },
        { action: 'join-colony', agentId, walletAddress: 'x' },
      ]) {
        const { body: said, status } = await askAsAda(body);
        expect([body.action, status, said]).toEqual([
          body.action,
          500,
          { success: false, error: 'x402 gateway error' },
        ]);
      }
    },
  );

  test.each<[string, unknown]>([
    ['endpoints', {}],
    ['endpoints', { endpoints: [{ slug: 'x', description: 'x', price: 1 }] }],
    ['endpoints', { endpoints: [{ slug: 'x', price: '1' }] }],
    ['fitness', { ...FITNESS, score: 101 }],
    ['fitness', { ...FITNESS, score: '87' }],
    ['fitness', { ...FITNESS, details: { prediction: 'high' } }],
    ['fitness', { score: 1, tier: 'gold' }],
    ['pricing', { ...PRICING, tier: undefined }],
    ['pricing', { ...PRICING, pricing: { rate: '1', discount: 0 } }],
    ['pricing', { ...PRICING, fitness: {} }],
  ])('answers 500 for the %s %j', async (action, said) => {
    answer = (response) => json(response, 200, said);
    const { body, status } = await askAsAda({ action, agentId });
    expect([status, body]).toEqual([500, { success: false, error: 'x402 gateway error' }]);
  });

  test('answers 500 without a gateway', async () => {
    const { body, status } = await ask({ action: 'endpoints' }, {}, await webOver(undefined));
    expect([status, body]).toEqual([500, { success: false, error: 'x402 gateway error' }]);
  });
});
