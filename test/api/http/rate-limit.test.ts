import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { BlockList } from 'node:net';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import * as z from 'zod';
import { anonymous } from '../../../api/auth/anonymous.js';
import type { Authentication } from '../../../api/auth/authentication.js';
import { AI_LIMIT, GENERAL_LIMIT } from '../../../api/backend/limits.js';
import { session } from '../../../api/auth/session.js';
import { BadRequestError } from '../../../src/lib/errors.js';
import { networksOf } from '../../../src/platform/http/client-networks.js';
import { endpoint } from '../../../api/http/endpoint.js';
import { MemoryCounters } from '../../../api/http/memory-counters.js';
import type { WideLimit } from '../../../api/http/rate-limit.js';
import { RedisCounters } from '../../../api/http/redis-counters.js';
import { reply } from '../../../api/http/reply.js';
import {
  bearer,
  HTTP_SETTINGS,
  INTERNAL_KEY,
  postJson,
  serve,
  signedIn,
  type TestListener,
  NO_API_KEYS,
} from './support.js';
import { TestRedis } from '../../support/redis.js';
import { until } from '../../support/until.js';

const limit = (name: string, max: number, below: string): WideLimit => ({
  name,
  max,
  windowMs: 60_000,
  message: `too many for ${name}`,
  below,
});

const one = (client: string) => ({ host: client, site: client });

const general = GENERAL_LIMIT;
const ai = AI_LIMIT;

const auth = (path: string): Authentication => (path === '/api/private' ? session : anonymous);

let handled = 0;
const route = (path: string, method: 'GET' | 'POST') =>
  endpoint({
    method,
    path,
    summary: path,
    tag: 'limited',
    auth: auth(path),
    responses: { 200: z.strictObject({ ok: z.boolean() }) },
    handler() {
      handled++;
      return reply(200, { ok: true });
    },
  });

/** Declares an endpoint that is also limited per caller. */
const ofAda = (path: string) => ({
  ...route(path, 'GET'),
  auth: session,
  limitOfCaller: { name: 'mine', max: 40, windowMs: 60_000, message: 'too many for Ada' },
});

/** Declares an endpoint that refuses the input of every request, after all of a test have arrived. */
const refusing = endpoint({
  method: 'GET',
  path: '/api/refusing',
  summary: 'refuse',
  tag: 'limited',
  auth: session,
  limitOfRefusals: { name: 'refused', max: 3, windowMs: 60_000, message: 'too many refusals' },
  errors: [400],
  responses: { 200: z.strictObject({ ok: z.boolean() }) },
  async handler() {
    handled++;
    await delay(1_000);
    throw new BadRequestError('never valid');
  },
});

const endpoints = [
  refusing,
  route('/api/plain', 'GET'),
  route('/api/plain', 'POST'),
  route('/api/ai/chat', 'GET'),
  route('/api/private', 'GET'),
  route('/free', 'GET'),
  ofAda('/api/mine'),
  ofAda('/api/ai/mine'),
];

/** Seconds left of a minute, with tolerance for a busy machine. */
const SECONDS_OF_A_MINUTE = /^([1-9]|[1-5]\d|60)$/;

let open: TestListener[] = [];
async function start(options: Parameters<typeof serve>[1] = {}): Promise<TestListener> {
  const listener = await serve(endpoints, { limits: [general, ai], ...options });
  open.push(listener);
  return listener;
}

afterEach(async () => {
  vi.useRealTimers();
  await Promise.all(open.map((listener) => listener.close()));
  open = [];
  handled = 0;
});

const statuses = async (answers: Promise<Response>[]) =>
  (await Promise.all(answers)).map(({ status }) => status).sort();

describe('counters in memory', () => {
  test('admits at most four concurrent requests for each refusal that the limit still allows', async () => {
    const { call } = await start();
    const all = (count: number) =>
      statuses(Array.from({ length: count }, () => call('/api/refusing', { headers: signedIn })));
    expect(await all(20)).toEqual([...Array(12).fill(400), ...Array(8).fill(429)]);
    expect(await all(1)).toEqual([429]);
    expect(handled).toBe(12);
  });

  test('counts an absolute URL like its path', async () => {
    const { port, call } = await start();
    const spelt = httpRequest({ port, path: `http://127.0.0.1:${port}/api/plain` }).end();
    const [answer] = (await once(spelt, 'response')) as [IncomingMessage];
    expect([answer.statusCode, answer.headers['ratelimit-remaining']]).toEqual([200, '119']);
    answer.resume();
    expect((await call('/api/plain')).headers.get('ratelimit-remaining')).toBe('118');
  });

  test('accepts exactly the limit of concurrent requests', async () => {
    const { call } = await start();
    const answers = Array.from({ length: 134 }, () => call('/api/plain'));
    expect(await statuses(answers)).toEqual([...Array(120).fill(200), ...Array(14).fill(429)]);
    expect(handled).toBe(120);
  });

  test('admits exactly the limit of requests that one segment brings', async () => {
    const { port } = await start({ limits: [limit('five', 5, '/api/')] });
    expect(await answersOfOneSegment(port, 8)).toEqual([
      ...Array(5).fill(200),
      ...Array(3).fill(429),
    ]);
    expect(handled).toBe(5);
  });

  test('counts a request once per nested limit and reports the tightest', async () => {
    const { call } = await start();
    const first = await call('/api/ai/chat');
    expect(first.headers.get('ratelimit-limit')).toBe('30');
    expect(first.headers.get('ratelimit-remaining')).toBe('29');
    for (let n = 2; n <= 30; n++) await call('/api/ai/chat');
    const refused = await call('/api/ai/chat');
    expect(refused.status).toBe(429);
    expect(await refused.json()).toEqual({ error: 'AI rate limit exceeded.' });

    const other = await call('/api/plain');
    expect(other.headers.get('ratelimit-limit')).toBe('120');
    expect(other.headers.get('ratelimit-remaining')).toBe('89');
  });

  test('reports the tighter of the address limit and the caller limit', async () => {
    const { call } = await start();
    const reported = async (path: string) => {
      const { headers } = await call(path, { headers: signedIn });
      return ['ratelimit-limit', 'ratelimit-remaining'].map((name) => headers.get(name));
    };
    expect(await reported('/api/mine')).toEqual(['40', '39']);
    expect(await reported('/api/ai/mine')).toEqual(['30', '29']);
    for (let n = 3; n <= 40; n++) await reported('/api/mine');
    const refused = await call('/api/ai/mine', { headers: signedIn });
    expect(await refused.json()).toEqual({ error: 'too many for Ada' });
    expect(refused.headers.get('ratelimit-limit')).toBe('40');
    expect(refused.headers.get('retry-after')).toMatch(SECONDS_OF_A_MINUTE);
  });

  test('sends limit headers in whole seconds, and only on limited paths', async () => {
    const { call } = await start({ limits: [limit('one', 1, '/api/')] });
    const passed = await call('/api/plain');
    expect(passed.headers.get('ratelimit-reset')).toMatch(SECONDS_OF_A_MINUTE);
    expect(passed.headers.get('retry-after')).toBeNull();
    const refused = await call('/api/unknown');
    expect(refused.status).toBe(429);
    expect(refused.headers.get('ratelimit-remaining')).toBe('0');
    expect(refused.headers.get('retry-after')).toMatch(SECONDS_OF_A_MINUTE);
    const free = await call('/free');
    const names = [...free.headers.keys(), ...refused.headers.keys()];
    expect(names.filter((name) => name.startsWith('x-ratelimit'))).toEqual([]);
    expect(free.headers.get('ratelimit-limit')).toBeNull();
  });

  test('sends limit headers with errors too', async () => {
    const { call } = await start();
    const { status, headers } = await call('/api/private');
    expect([status, headers.get('ratelimit-remaining')]).toEqual([401, '119']);
  });

  test('refuses a request over the limit before authentication, parsing and handling', async () => {
    let lookups = 0;
    const find = () => Promise.resolve((lookups++, undefined));
    const { call } = await start({
      limits: [limit('one', 1, '/api/')],
      authenticate: [session.with({ find }), NO_API_KEYS],
    });
    await call('/api/plain');
    const headers = { cookie: 'service-session=x' };
    expect((await call('/api/private', { headers })).status).toBe(429);
    expect((await call('/api/plain', postJson('{not json'))).status).toBe(429);
    expect([lookups, handled]).toEqual([0, 1]);
  });

  test('evicts counters in memory after their window', () => {
    let now = 0;
    const counters = new MemoryCounters(() => now);
    for (let client = 0; client < 100; client++) counters.take(one(String(client)), [general, ai]);
    expect(counters.size).toBe(200);
    now = 60_000;
    expect(counters.take(one('0'), [general]).counts[0]?.remaining).toBe(119);
    expect(counters.size).toBe(1);
  });

  test('does not extend the window on a refusal', () => {
    let now = 0;
    const counters = new MemoryCounters(() => now);
    for (let n = 1; n <= 30; n++) counters.take(one('a'), [ai]);
    now = 59_999;
    expect(counters.take(one('a'), [ai]).refused).toBe(true);
    now = 60_000;
    expect(counters.take(one('a'), [ai]).refused).toBe(false);
  });

  test('bounds the number of counters', () => {
    const counters = new MemoryCounters();
    for (let client = 0; client < 60_000; client++) counters.take(one(String(client)), [general]);
    expect(counters.size).toBeGreaterThan(49_000);
    expect(counters.size).toBeLessThanOrEqual(50_000);
  });
});

describe('client address', { tags: 'attack' }, () => {
  test.each([
    ['192.0.2.1', '192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64', '2001:db8:1::/48'],
    ['2001:db8:1:2::9', '2001:db8:1:2::/64', '2001:db8:1::/48'],
    ['2001:0DB8:0001:0002::', '2001:db8:1:2::/64', '2001:db8:1::/48'],
    ['2001:db8::1', '2001:db8:0:0::/64', '2001:db8:0::/48'],
    ['::1', '0:0:0:0::/64', '0:0:0::/48'],
    ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64', '64:ff9b:0::/48'],
  ])('counts %s as %s, of the site %s', (address, host, site) => {
    expect(networksOf(address)).toEqual({ host, site });
  });

  const from = (address: string, extra = {}) => ({
    headers: { 'x-forwarded-for': address, ...extra },
  });
  const remaining = async (answer: Promise<Response>) =>
    (await answer).headers.get('ratelimit-remaining');

  test('ignores a forwarded address from an untrusted client', async () => {
    const { call } = await start();
    expect(await remaining(call('/api/plain', from('192.0.2.1')))).toBe('119');
    expect(await remaining(call('/api/plain', from('192.0.2.2', bearer('wrong'))))).toBe('118');
  });

  test('accepts a forwarded address from a holder of the internal key', async () => {
    const { call } = await start();
    const key = bearer(INTERNAL_KEY);
    expect(await remaining(call('/api/plain', from('192.0.2.1', key)))).toBe('119');
    expect(await remaining(call('/api/plain', from('192.0.2.2', key)))).toBe('119');
    expect(await remaining(call('/api/plain', from('::ffff:192.0.2.2', key)))).toBe('118');
  });

  test('reads a forwarded address that has a port', async () => {
    const { call } = await start();
    const key = bearer(INTERNAL_KEY);
    expect(await remaining(call('/api/plain', from('192.0.2.1:40001', key)))).toBe('119');
    expect(await remaining(call('/api/plain', from('192.0.2.1:40002', key)))).toBe('118');
    expect(await remaining(call('/api/plain', from('[2001:db8:9::1]:40004', key)))).toBe('119');
    expect(await remaining(call('/api/plain', from('[2001:db8:9::1]', key)))).toBe('118');
    expect(await remaining(call('/api/plain', from('2001:db8:9::1', key)))).toBe('117');
    expect(await remaining(call('/api/plain', from('2001:db8:9::1, ,', key)))).toBe('116');
  });

  test('uses the first untrusted hop from the right behind trusted proxies', async () => {
    const trustedProxies = new BlockList();
    trustedProxies.addSubnet('127.0.0.0', 8, 'ipv4');
    trustedProxies.addAddress('198.51.100.7', 'ipv4');
    const { call } = await start({
      settings: { ...HTTP_SETTINGS, trustedProxies },
    });
    expect(await remaining(call('/api/plain', from('192.0.2.1')))).toBe('119');
    expect(await remaining(call('/api/plain', from('10.9.9.9, 192.0.2.1, 198.51.100.7')))).toBe(
      '118',
    );
    expect(await remaining(call('/api/plain', from('192.0.2.1, nonsense')))).toBe('119');
  });
});

describe('counters in Redis', () => {
  let redis: TestRedis;

  const settings = () => ({ ...HTTP_SETTINGS, redisUrl: redis.url });

  beforeAll(async () => {
    redis = await TestRedis.start();
  });
  afterAll(() => redis?.stop());

  test('accepts exactly the limit across two processes', async () => {
    const found = await until(async () => {
      const limits = [{ ...GENERAL_LIMIT, name: `shared-${randomUUID()}` }];
      const listeners = [
        await start({ limits, settings: settings() }),
        await start({ limits, settings: settings() }),
      ];
      const answers = await statuses(
        listeners.flatMap(({ call }) => Array.from({ length: 65 }, () => call('/api/plain'))),
      );
      // If Redis stalls for half a second on a busy machine, each process counts by itself: retry.
      const isShared = listeners.every(({ log }) => !log.some(({ level }) => level === 40));
      return isShared ? answers : undefined;
    });
    expect(found).toEqual([...Array(120).fill(200), ...Array(10).fill(429)]);
  });

  test('counts a request once per nested limit in Redis, and a refusal in none', async () => {
    const limits = [
      { ...GENERAL_LIMIT, name: 'outer' },
      { ...AI_LIMIT, name: 'inner' },
    ];
    const { call } = await start({ limits, settings: settings() });
    for (let n = 1; n <= 32; n++) await call('/api/ai/chat');
    const { headers } = await call('/api/plain');
    expect(headers.get('ratelimit-remaining')).toBe('89');
    expect(headers.get('ratelimit-reset')).toMatch(SECONDS_OF_A_MINUTE);
  });

  test('reads a count in Redis without a change', async () => {
    const memory = new MemoryCounters();
    const { redisUrl: url } = settings();
    const counters = new RedisCounters({
      url,
      namespace: randomUUID(),
      memory,
      log: pino({ level: 'silent' }),
    });
    const taken = async (by: 0 | 1) => {
      const { counts, refused } = await counters.take(one('ada'), [limit('read', 1, '/')], by);
      return [refused, counts[0]?.remaining];
    };
    expect(await taken(0)).toEqual([false, 1]);
    expect(await taken(0)).toEqual([false, 1]);
    expect(await taken(1)).toEqual([false, 0]);
    expect(await taken(0)).toEqual([true, 0]);
    expect(memory.size).toBe(0);
    await counters.close();
  });

  test('evicts counters in Redis after their window', async () => {
    const brief = { ...limit('brief', 1, '/api/'), windowMs: 200 };
    const { call } = await start({ limits: [brief], settings: settings() });
    expect((await call('/api/plain')).status).toBe(200);
    expect((await call('/api/plain')).status).toBe(429);
    await until(async () => (await call('/api/plain')).status === 200);
  });

  test('counts per process while Redis is unavailable, then shares again regardless of the clock', async () => {
    const limits = [limit('outage', 2, '/api/')];
    const { call, log } = await start({ limits, settings: settings() });
    expect((await call('/api/plain')).status).toBe(200);
    await redis.stop();
    expect(await statuses([1, 2, 3].map(() => call('/api/plain')))).toEqual([200, 200, 429]);
    await redis.start();
    vi.useFakeTimers({ toFake: ['Date'], now: 0 });
    await until(async () => {
      await call('/api/plain');
      return log.some(({ msg }) => msg === 'Redis is available again: limits are shared');
    });
    expect(log.filter(({ level }) => level === 40)).toHaveLength(1);
  });
});

/** Sends requests in one write, so that they reach the listener in one tick, and returns their statuses. */
async function answersOfOneSegment(port: number, requests: number): Promise<number[]> {
  const head = `GET /api/plain HTTP/1.1\r\nHost: 127.0.0.1\r\n`;
  const socket = connect(port, '127.0.0.1');
  socket.write(`${head}\r\n`.repeat(requests - 1) + `${head}Connection: close\r\n\r\n`);
  const answered = await text(socket);
  return [...answered.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
}
