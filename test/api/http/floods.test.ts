// @module-tag attack
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import * as z from 'zod';
import { anonymous } from '../../../api/auth/anonymous.js';
import type { Authentication } from '../../../api/auth/authentication.js';
import { agentToken } from '../../../api/auth/agent-token.js';
import { session } from '../../../api/auth/session.js';
import { internalKey } from '../../../api/auth/internal-key.js';
import { AddressGuard } from '../../../api/http/address-guard.js';
import { bodyMemory } from '../../../api/http/body-memory.js';
import { endpoint } from '../../../api/http/endpoint.js';
import { reply, streamReply } from '../../../api/http/reply.js';
import { hasMoreValues } from '../../../api/http/value-count.js';
import {
  bearer,
  HTTP_SETTINGS,
  INTERNAL_KEY,
  postJson,
  serve,
  signedIn,
  type TestListener,
} from './support.js';
import { until } from '../../support/until.js';

const ok = z.strictObject({ ok: z.literal(true) });
let handled = 0;
const keep = (path: string, auth: Authentication) =>
  endpoint({
    method: 'POST',
    path,
    summary: path,
    tag: 'floods',
    auth,
    body: z.object({ text: z.unknown() }),
    responses: { 200: ok },
    handler() {
      handled++;
      return reply(200, { ok: true });
    },
  });

let produced = 0;
const endless = endpoint({
  method: 'GET',
  path: '/endless',
  summary: 'Never ends',
  tag: 'floods',
  auth: anonymous,
  responses: { 200: 'stream' },
  handler() {
    const read = function (this: Readable) {
      produced++;
      this.push(Buffer.alloc(64 * 1024, 'x'));
    };
    return streamReply(200, new Readable({ read }), 'text/plain');
  },
});

const forPrograms = (path: string, auth: Authentication) => ({
  ...keep(path, auth),
  limitOfCaller: { name: 'calls', max: 3, windowMs: 60_000, message: 'too many calls' },
});

/** Releases of the waiting handlers; a streaming answer ends only with its client. */
const endings: (() => void)[] = [];
const waiting = endpoint({
  method: 'GET',
  path: '/waiting',
  summary: 'Waits',
  tag: 'floods',
  auth: session,
  query: z.object({ stream: z.string().optional(), free: z.string().optional() }),
  atOnce: {
    name: 'waits',
    perOwner: 2,
    counts: (query) => !z.object({ free: z.string() }).safeParse(query).success,
  },
  responses: { 200: [ok, 'stream'] },
  async handler({ query }) {
    if (query.free !== undefined) return reply(200, { ok: true });
    if (query.stream !== undefined) {
      return streamReply(200, new Readable({ read: () => undefined }), 'text/plain');
    }
    await new Promise<void>((end) => endings.push(end));
    return reply(200, { ok: true });
  },
});

/** Keeps its body until `endings` are called. */
const held = endpoint({
  method: 'POST',
  path: '/held',
  summary: 'Waits',
  tag: 'floods',
  auth: anonymous,
  body: z.object({ text: z.string() }),
  responses: { 200: ok },
  async handler() {
    await new Promise<void>((end) => endings.push(end));
    return reply(200, { ok: true });
  },
});

const endpoints = [
  waiting,
  held,
  keep('/mine', session),
  keep('/anybodys', anonymous),
  forPrograms('/agents', agentToken),
  forPrograms('/operators', internalKey),
  endless,
];

let open: TestListener[] = [];
const sockets: Socket[] = [];
async function start(options: Parameters<typeof serve>[1] = {}): Promise<TestListener> {
  const listener = await serve(endpoints, options);
  open.push(listener);
  return listener;
}
afterEach(async () => {
  vi.restoreAllMocks();
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(open.map((listener) => listener.close()));
  open = [];
  handled = 0;
  endings.length = 0;
});

/** Opens a raw client connection that collects the received text. */
async function dial({ port }: TestListener, from = '127.0.0.1') {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from });
  sockets.push(socket);
  const client = { socket, reported: '', isClosed: false };
  socket.on('error', () => undefined);
  socket.on('data', (chunk) => (client.reported += chunk.toString()));
  socket.on('close', () => (client.isClosed = true));
  await once(socket, 'connect');
  return client;
}

const head = (path: string, headers: Record<string, string | number> = {}) =>
  [
    `POST ${path} HTTP/1.1`,
    'Host: 127.0.0.1',
    'Content-Type: application/json',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    '\r\n',
  ].join('\r\n');

const MB = 1024 * 1024;

describe('request body flood', () => {
  test('neither awaits nor parses the body of an unauthenticated request', async () => {
    const listener = await start({ bounds: { unwantedMs: 300 } });
    const parse = vi.spyOn(JSON, 'parse');
    const client = await dial(listener);
    client.socket.write(head('/mine', { 'Content-Length': MB }));
    await until(() => client.reported.startsWith('HTTP/1.1 401 '));
    // The server drains the body briefly, so the connection can serve another request.
    client.socket.write(`"${'x'.repeat(MB - 2)}"`);
    client.reported = '';
    client.socket.write(head('/mine', { 'Content-Length': 2 }));
    await until(() => client.reported.startsWith('HTTP/1.1 401 '));
    const texts = parse.mock.calls.map(([text]) => text.slice(0, 4));
    expect(texts.filter((text) => text === '"xxx')).toEqual([]);
    await until(() => client.isClosed);
    expect(handled).toBe(0);
  });

  test('closes the connection of an unwanted body that does not end', async () => {
    const listener = await start({ bounds: { unwantedBytes: MB } });
    const client = await dial(listener);
    client.socket.write(head('/mine', { 'Transfer-Encoding': 'chunked' }));
    await until(() => client.reported.startsWith('HTTP/1.1 401 '));
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
    const pouring = setInterval(() => client.socket.write(chunk), 1);
    await until(() => client.isClosed).finally(() => clearInterval(pouring));
    expect(client.socket.bytesWritten).toBeLessThan(16 * MB);
  });

  const textOf = (bytes: number) =>
    JSON.stringify({ text: 'x'.repeat(bytes - '{"text":""}'.length) });
  const sized = (bytes: number, headers = {}) => postJson(textOf(bytes), headers);

  test.each([
    ['/anybodys', {}],
    ['/mine', signedIn],
  ])('accepts a body of 1 MB at %s, and none larger', async (path, headers) => {
    const { call } = await start();
    expect((await call(path, sized(MB, headers))).status).toBe(200);
    expect((await call(path, sized(MB + 1, headers))).status).toBe(413);
  });

  /** Sends requests with a body of 1 MB from these addresses, which are answered when `endings` are called. */
  async function holdBodies(listener: TestListener, ...addresses: string[]): Promise<void> {
    for (const from of addresses) {
      const { socket } = await dial(listener, from);
      socket.write(head('/held', { 'Content-Length': MB }));
      socket.write(textOf(MB));
    }
    await until(() => endings.length === addresses.length);
  }

  test('answers 503 with Retry-After beyond the budget for all bodies, and admits small ones', async () => {
    const listener = await start({ bounds: { bodiesBytes: 4 * MB, bodiesBytesOfOwner: 4 * MB } });
    const { call } = listener;
    await holdBodies(listener, '127.0.0.2', '127.0.0.3', '127.0.0.4');
    const refused = await call('/anybodys', sized(MB));
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5']);
    expect(await refused.json()).toMatchObject({
      error: 'Too many large requests at a time: retry later',
    });
    // The reserve accepts forms of any client, and larger bodies of known users.
    expect((await call('/anybodys', sized(16 * 1024))).status).toBe(200);
    expect((await call('/anybodys', sized(16 * 1024 + 1))).status).toBe(503);
    expect((await call('/mine', sized(64 * 1024, signedIn))).status).toBe(200);
    for (const end of endings.splice(0)) end();
    await until(async () => (await call('/anybodys', sized(MB))).status === 200);
  });

  test('answers 503 to an address whose unauthenticated clients hold too much, and not to another', async () => {
    const listener = await start({ bounds: { bodiesBytesOfOwner: 1.5 * MB } });
    await holdBodies(listener, '127.0.0.1');
    expect((await listener.call('/anybodys', sized(MB))).status).toBe(503);
    expect((await listener.call('/mine', sized(MB, signedIn))).status).toBe(200);
    for (const end of endings.splice(0)) end();
  });

  test('all listeners of a process share one budget for bodies', () => {
    expect(bodyMemory()).toBe(bodyMemory({}));
  });

  test.each([
    ['lists', '[],'.repeat(300_000)],
    ['numbers', '0,'.repeat(500_000)],
    ['objects', '{},'.repeat(300_000)],
    ['deep lists', `${'['.repeat(90)}${']'.repeat(90)},`.repeat(5_000)],
  ])('refuses a body of 1 MB that is all %s before parsing', async (_, values) => {
    const { call } = await start();
    const parse = vi.spyOn(JSON, 'parse');
    const answer = await call('/mine', postJson(`{"text":[${values}0]}`, signedIn));
    expect(parse.mock.calls.filter(([text]) => text.startsWith('{"text"'))).toEqual([]);
    expect([answer.status, await answer.json()]).toEqual([
      413,
      { error: 'Request body has too many values (at most 50000)' },
    ]);
  });

  test('accepts a body of 1 MB that is one text', async () => {
    const { call } = await start();
    const text = '[{,"\\'.repeat(100_000);
    expect((await call('/mine', postJson({ text }, signedIn))).status).toBe(200);
  });

  test('closes a connection whose body arrives too slowly', async () => {
    const listener = await start({ bounds: { paceMs: 200, paceBytes: 1_000, unwantedMs: 200 } });
    const client = await dial(listener);
    client.socket.write(head('/anybodys', { 'Content-Length': 10_000 }));
    const trickling = setInterval(() => client.socket.write('x'), 20);
    await until(() => client.isClosed).finally(() => clearInterval(trickling));
    expect(client.reported).toContain('HTTP/1.1 400 ');
    expect(client.reported).toContain('Request body arrives too slowly: send it faster');
  });

  test('limits the body memory of an owner across keys until the requests are answered', async () => {
    const listener = await start({ bounds: { bodiesBytesOfOwner: 1.5 * MB } });
    const big = postJson({ text: 'x'.repeat(MB - 100) }, signedIn);
    const holding = await dial(listener);
    const cookie = signedIn.cookie;
    holding.socket.write(head('/mine', { 'Content-Length': MB, Cookie: cookie }));
    holding.socket.write(Buffer.alloc(MB - 100, ' '));
    await until(async () => (await listener.call('/mine', big)).status === 429);
    const by = (token: string) => postJson({ text: 'x'.repeat(MB - 100) }, bearer(token));
    expect((await listener.call('/agents', by('agent-token'))).status).toBe(429);
    expect((await listener.call('/agents', by('agent-token-of-bob'))).status).toBe(200);
    holding.socket.write(`{"text":1}${' '.repeat(90)}`);
    await until(() => holding.reported.startsWith('HTTP/1.1 200 '));
    expect((await listener.call('/mine', big)).status).toBe(200);
  });

  test('frees the body memory of a pipelined request when its client disconnects', async () => {
    const listener = await start({ bounds: { bodiesBytesOfOwner: 1.5 * MB } });
    const text = JSON.stringify({ text: 'x'.repeat(MB - 100) });
    const { cookie } = signedIn;
    const client = await dial(listener);
    client.socket.write(
      `GET /waiting?stream=1 HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: ${cookie}\r\n\r\n`,
    );
    client.socket.write(head('/mine', { 'Content-Length': text.length, Cookie: cookie }) + text);
    await until(() => handled === 1);
    const big = postJson({ text: 'x'.repeat(MB - 100) }, signedIn);
    expect((await listener.call('/mine', big)).status).toBe(429);
    client.socket.destroy();
    await until(async () => (await listener.call('/mine', big)).status === 200);
  });

  test('closes a connection whose request takes too long in total', async () => {
    const listener = await start({ bounds: { headersMs: 200, requestMs: 500 } });
    const client = await dial(listener);
    client.socket.write(head('/anybodys', { 'Content-Length': 10_000 }));
    const trickling = setInterval(() => client.socket.write('x'.repeat(100)), 50);
    await until(() => client.isClosed).finally(() => clearInterval(trickling));
    expect(handled).toBe(0);
  });
});

describe('request limits', () => {
  test('limits the requests of an address per minute on all paths, without affecting others', async () => {
    const settings = { ...HTTP_SETTINGS, requestsPerMinute: 60 };
    const { call } = await start({ settings });
    const from = (address: string) => ({
      headers: { ...bearer(INTERNAL_KEY), 'x-forwarded-for': address },
    });
    const paths = ['/mine', '/nothing', '/docs', '/%ff'];
    for (let n = 0; n < 60; n++) {
      const { headers, status } = await call(paths[n % 4] ?? '', from('192.0.2.1'));
      expect([status === 429, headers.get('ratelimit-limit')]).toEqual([false, null]);
    }
    for (const path of paths) {
      const { headers, status } = await call(path, from('192.0.2.1'));
      expect([path, status]).toEqual([path, 429]);
      expect(headers.get('retry-after')).toMatch(/^[1-9]\d?$/);
      expect(headers.get('ratelimit-limit')).toBe('60');
    }
    expect((await call('/nothing', from('192.0.2.2'))).status).toBe(404);
  });

  test('counts addresses in bounded memory and evicts expired and idle ones', () => {
    let now = 0;
    const guard = new AddressGuard(1, () => now);
    expect([guard.refuse('a'), guard.refuse('a')?.refused]).toEqual([undefined, true]);
    now = 60_000;
    expect(guard.refuse('a')).toBeUndefined();
    for (let n = 0; n < 200_000; n++) {
      if (n % 100_000 === 0) guard.refuse('b');
      guard.refuse(String(n));
    }
    expect([guard.refuse('a'), guard.refuse('b')?.refused]).toEqual([undefined, true]);
  });

  test('limits the requests of a caller regardless of address', async () => {
    const { call } = await start();
    const ask = (path: string, key: string, headers = {}) =>
      call(path, postJson({ text: 'x' }, { ...bearer(key), ...headers }));
    for (let left = 2; left >= 0; left--) {
      const { headers, status } = await ask('/agents', 'agent-token');
      expect([status, headers.get('ratelimit-remaining')]).toEqual([200, String(left)]);
    }
    const refused = await ask('/agents', 'agent-token');
    expect([refused.status, await refused.json()]).toEqual([429, { error: 'too many calls' }]);
    expect(refused.headers.get('retry-after')).toMatch(/^([1-9]|[1-5]\d|60)$/);

    const ada = { 'x-user-id': 'ada' };
    const statuses = [];
    for (let n = 0; n < 4; n++) statuses.push((await ask('/operators', INTERNAL_KEY, ada)).status);
    expect(statuses).toEqual([200, 200, 200, 429]);
    // The operator's own programs are not rate limited.
    for (let n = 0; n < 5; n++) expect((await ask('/operators', INTERNAL_KEY)).status).toBe(200);
  });
});

describe('concurrent requests', () => {
  const headers = signedIn;

  test('limits the concurrent requests of a user and frees a place when one ends', async () => {
    const { call } = await start();
    const open = [call('/waiting', { headers }), call('/waiting', { headers })];
    await until(() => endings.length === 2);
    const refused = await call('/waiting', { headers });
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '5']);
    expect(await refused.json()).toMatchObject({
      error: 'Too many requests at a time, please wait.',
    });
    // Requests that do not count are served.
    expect((await call('/waiting?free=1', { headers })).status).toBe(200);
    for (const end of endings.splice(0)) end();
    expect((await Promise.all(open)).map(({ status }) => status)).toEqual([200, 200]);
    const again = call('/waiting', { headers });
    await until(() => endings.length === 1);
    endings.pop()?.();
    expect((await again).status).toBe(200);
  });

  test('counts a stream until its client disconnects', async () => {
    const { call } = await start();
    const leaving = new AbortController();
    const { signal } = leaving;
    const stream = () => call('/waiting?stream=1', { headers, signal });
    expect([(await stream()).status, (await stream()).status]).toEqual([200, 200]);
    expect((await call('/waiting', { headers })).status).toBe(429);
    leaving.abort();
    await until(async () => {
      const answer = await call('/waiting?stream=1', { headers, signal: AbortSignal.timeout(200) });
      return answer.status === 200;
    });
  });

  test('counts an abandoned request until its handler is done', async () => {
    const { call } = await start();
    const leaving = new AbortController();
    const { signal } = leaving;
    const left = [1, 2].map(() => call('/waiting', { headers, signal }).catch(() => undefined));
    await until(() => endings.length === 2);
    leaving.abort();
    await Promise.all(left);
    await delay(50);
    expect((await call('/waiting', { headers })).status).toBe(429);
    for (const end of endings.splice(0)) end();
  });
});

describe('JSON value counting', () => {
  test.each([
    ['[1,2,3]', 4],
    ['{"a":[1,{}],"b":"[,{\\",["}', 6],
    ['"\\\\",[', 3],
    ['["no end [[[', 2],
  ])('counts %s as %i values', (json, count) => {
    const bytes = Buffer.from(json);
    expect([hasMoreValues(bytes, count - 1), hasMoreValues(bytes, count)]).toEqual([true, false]);
  });
});

describe('connection limits', () => {
  test('closes connections whose request head does not arrive in time', async () => {
    const listener = await start({ bounds: { headersMs: 200 } });
    const [silent, slow] = [await dial(listener), await dial(listener)];
    const trickling = setInterval(() => slow.socket.write('X'), 20);
    slow.socket.write('GET / HTTP/1.1\r\n');
    await until(() => silent.isClosed && slow.isClosed).finally(() => clearInterval(trickling));
  });

  test('limits the connections of an address, without affecting others', async () => {
    const listener = await start({ bounds: { connectionsOfAddress: 3 } });
    const clients: Awaited<ReturnType<typeof dial>>[] = [];
    for (let n = 0; n < 5; n++) clients.push(await dial(listener));
    await until(() => clients.filter(({ isClosed }) => isClosed).length === 2);
    const other = await dial(listener, '127.0.0.2');
    other.socket.write(head('/mine', { 'Content-Length': 0 }));
    await until(() => other.reported.startsWith('HTTP/1.1 401 '));
    clients[0]?.socket.destroy();
    await until(async () => {
      const again = await dial(listener);
      again.socket.write(head('/mine', { 'Content-Length': 0 }));
      await delay(20);
      return again.reported.startsWith('HTTP/1.1 401 ');
    });
  });

  test('closes the oldest idle connection when there are too many', async () => {
    const listener = await start({ bounds: { connections: 4 } });
    const asking = await dial(listener, '127.0.0.3');
    asking.socket.write(head('/anybodys', { 'Content-Length': 15 }));
    const idle: (typeof asking)[] = [];
    for (let n = 0; n < 3; n++) idle.push(await dial(listener));
    const newcomer = await dial(listener, '127.0.0.2');
    newcomer.socket.write(head('/mine', { 'Content-Length': 0 }));
    await until(() => newcomer.reported.startsWith('HTTP/1.1 401 '));
    expect(idle.map(({ isClosed }) => isClosed)).toEqual([true, false, false]);
    asking.socket.write('{"text":"abcd"}');
    await until(() => asking.reported.startsWith('HTTP/1.1 200 '));
  });

  test('closes a connection whose client does not read the answer', async () => {
    const listener = await start({ bounds: { stalledMs: 300 } });
    const { socket } = await dial(listener);
    socket.pause();
    const closed = once(socket, 'close');
    socket.write('GET /endless HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
    await until(() => produced > 0);
    let before = -1;
    await until(async () => {
      if (produced === before) return true;
      before = produced;
      await delay(100);
      return false;
    });
    await until(() => open.every(({ log }) => log.some(({ aborted }) => aborted === true)));
    socket.resume();
    await closed;
  });
});
