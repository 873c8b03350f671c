import { request } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { anonymous } from '../../../api/auth/anonymous.js';
import { session } from '../../../api/auth/session.js';
import { agentToken } from '../../../api/auth/agent-token.js';
import type { Authentication } from '../../../api/auth/authentication.js';
import { internalKey } from '../../../api/auth/internal-key.js';
import { optionalSession } from '../../../api/auth/optional-session.js';
import { endpoint } from '../../../api/http/endpoint.js';
import { reply, streamReply } from '../../../api/http/reply.js';
import { ListenError } from '../../../api/http/server.js';
import { NotFoundError, UnavailableError } from '../../../src/lib/errors.js';
import {
  AGENT,
  bearer,
  CSRF_TOKEN,
  findSession,
  HTTP_SETTINGS,
  INTERNAL_KEY,
  NO_API_KEYS,
  PREVIOUS_KEY,
  postJson,
  serve,
  signedIn,
  type TestListener,
} from './support.js';
import { until } from '../../support/until.js';

let handled: unknown[] = [];

const anything = z.record(z.string(), z.unknown());

const notes = endpoint({
  method: 'POST',
  path: '/notes/:id',
  summary: 'Keep a note',
  tag: 'notes',
  auth: anonymous,
  params: z.strictObject({ id: z.string().max(5) }),
  query: z.strictObject({
    color: z.enum(['red', 'blue']).optional(),
    mark: z.string().optional(),
  }),
  body: z.strictObject({
    name: z.string().min(1),
    password: z.string().min(8).optional(),
    config: z.strictObject({ plan: z.enum(['solo', 'label']) }).optional(),
    email: z.email().optional(),
    url: z.string({ error: 'url required' }).optional(),
    any: anything.optional(),
  }),
  responses: { 200: z.strictObject({ id: z.string(), name: z.string() }) },
  errors: [404],
  handler({ params, body }) {
    handled.push(body);
    if (body.name === 'missing') throw new NotFoundError('No such note');
    if (body.name === 'crash') throw new Error('a secret detail');
    return reply(200, { id: params.id, name: body.name });
  },
});

const whoAmI = (auth: Authentication) =>
  endpoint({
    method: 'GET',
    path: `/me/${auth.name}`,
    summary: 'Show the caller',
    tag: 'me',
    auth,
    responses: { 200: anything },
    handler: ({ caller }) => reply(200, { ...caller }),
  });

const change = endpoint({
  method: 'POST',
  path: '/change',
  summary: 'Change something',
  tag: 'me',
  auth: session,
  responses: { 200: z.strictObject({ ok: z.boolean() }) },
  handler: () => {
    handled.push('change');
    return reply(200, { ok: true });
  },
});

const wrong = endpoint({
  method: 'GET',
  path: '/wrong',
  summary: 'Returns undeclared fields',
  tag: 'wrong',
  auth: anonymous,
  responses: { 200: z.strictObject({ id: z.string() }) },
  handler: () => reply(200, { id: 'x', passwordHash: 'secret' }),
});

const undeclaredError = endpoint({
  method: 'GET',
  path: '/undeclared-error',
  summary: 'Fails with an undeclared status',
  tag: 'wrong',
  auth: anonymous,
  responses: { 200: anything },
  handler: () => {
    throw new NotFoundError();
  },
});

const endpoints = [
  notes,
  change,
  wrong,
  undeclaredError,
  whoAmI(anonymous),
  whoAmI(session),
  whoAmI(optionalSession),
  whoAmI(internalKey),
  whoAmI(agentToken),
];

let open: TestListener[] = [];
async function start(...args: Parameters<typeof serve>): Promise<TestListener> {
  const listener = await serve(...args);
  open.push(listener);
  return listener;
}
const listen = () => start(endpoints);

afterEach(async () => {
  await Promise.all(open.map((listener) => listener.close()));
  open = [];
  handled = [];
});

describe('validation', () => {
  test.each([
    [{}, 'name is required'],
    [{ name: '' }, 'name is required'],
    [{ name: 5 }, 'name must be text'],
    [{ name: 'a', password: 'short' }, 'password must be at least 8 characters'],
    [{ name: 'a', config: { plan: 'gold' } }, 'config.plan must be one of solo, label'],
    [{ name: 'a', email: 'nope' }, 'email must be an email address'],
    [{ name: 'a', extra: 1 }, 'extra is not a known field'],
    [{ name: 'a', url: 5 }, 'url required'],
    [[], 'body must be an object'],
    ['null', 'body must be an object'],
    ['{"name":"a\\u0000b"}', 'body contains a character that cannot be stored'],
    ['{"name":"a","any":{"\\ud800":1}}', 'body contains a character that cannot be stored'],
    ['{"name":', 'Request body is not valid JSON'],
  ])('rejects the body %j with "%s"', async (body, error) => {
    const { call } = await listen();
    const response = await call('/notes/1', postJson(body));
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ error });
    expect(handled).toEqual([]);
  });

  test('rejects a body with thousands of nested arrays', async () => {
    const { call } = await listen();
    const deep = `{"name":"a","any":{"a":${'['.repeat(5000)}${']'.repeat(5000)}}}`;
    const response = await call('/notes/1', postJson(deep));
    expect(await response.json()).toEqual({ error: 'body is nested too deeply' });
  });

  test('reports a missing body as a missing required field', async () => {
    const { call } = await listen();
    const response = await call('/notes/1', { method: 'POST' });
    expect(await response.json()).toEqual({ error: 'name is required' });
  });

  test.each([
    ['/notes/123456', 'id must be at most 5 characters'],
    ['/notes/%00', 'path contains a character that cannot be stored'],
    ['/notes/%E0%A4', 'The request path is not valid'],
    ['/notes/1?color=green', 'color must be one of red, blue'],
    ['/notes/1?color=red&color=blue', 'color must be one of red, blue'],
    ['/notes/1?color=%00', 'color must be one of red, blue'],
    ['/notes/1?mark=%00', 'query contains a character that cannot be stored'],
    ['/notes/1?__proto__=x', '__proto__ is not a known field'],
  ])('rejects the path %s with "%s"', async (path, error) => {
    const { call } = await listen();
    const response = await call(path, postJson({ name: 'a' }));
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ error });
  });

  test('passes decoded parameters to the handler', async () => {
    const { call } = await listen();
    const response = await call('/notes/a%2Fb', postJson({ name: 'n' }));
    expect(await response.json()).toEqual({ id: 'a/b', name: 'n' });
  });
});

describe('unsupported requests', () => {
  test('answers an unknown path with 404 in JSON', async () => {
    const { call } = await listen();
    for (const path of ['/nothing', '/notes/1/', '/notes//', '//notes/1', '/%6eotes/1']) {
      const response = await call(path);
      expect([path, response.status]).toEqual([path, 404]);
      expect(await response.json()).toEqual({ error: 'Not found' });
    }
  });

  test('answers a wrong method with 405 and the allowed methods', async () => {
    const { call } = await listen();
    const response = await call('/notes/1', { method: 'DELETE' });
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe('POST, OPTIONS');
  });

  test('answers OPTIONS with the methods and HEAD like GET without a body', async () => {
    const { call } = await listen();
    const options = await call('/me/none', { method: 'OPTIONS' });
    expect([options.status, options.headers.get('allow')]).toEqual([204, 'GET, HEAD, OPTIONS']);
    const head = await call('/me/none', { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
    expect((await call('/docs', { method: 'HEAD' })).status).toBe(200);
  });

  test('rejects another content type with 415', async () => {
    const { call } = await listen();
    const response = await call('/notes/1', { method: 'POST', body: 'name=a' });
    expect(response.status).toBe(415);
    expect(handled).toEqual([]);
  });

  test('rejects a compressed body with 415, since its size is unknown', async () => {
    const { call } = await listen();
    const response = await call('/notes/1', postJson({}, { 'content-encoding': 'gzip' }));
    expect(response.status).toBe(415);
    expect(handled).toEqual([]);
  });
});

describe('a body over 1 MB', { tags: 'attack' }, () => {
  const big = JSON.stringify({ name: 'a'.repeat(2 * 1024 * 1024) });

  test('rejects a body over 1 MB with 413 before the handler runs', async () => {
    const { call } = await listen();
    expect((await call('/notes/1', postJson(big))).status).toBe(413);
    expect((await call('/change', postJson(big, signedIn))).status).toBe(413);
    expect(handled).toEqual([]);
  });

  test.each<Record<string, string>>([{}, { cookie: 'service-session=wrong' }])(
    'authenticates before it checks the body size: 401 with %j',
    async (headers) => {
      const { call } = await listen();
      expect((await call('/change', postJson(big, headers))).status).toBe(401);
      expect((await call('/change', postJson({}, headers))).status).toBe(401);
    },
  );

  /**
   * Sends the body in chunks, without Content-Length.
   *
   * @returns the status of the answer.
   */
  async function sendInChunks(path: string, body: string): Promise<number | undefined> {
    const { url } = await listen();
    return new Promise((resolve, reject) => {
      const headers = { 'content-type': 'application/json', ...signedIn };
      const outgoing = request(`${url}${path}`, { method: 'POST', headers }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      outgoing.on('error', reject);
      for (let at = 0; at < body.length; at += 65_536) outgoing.write(body.slice(at, at + 65_536));
      outgoing.end();
    });
  }

  test.each(['/notes/1', '/change'])(
    'rejects an oversized chunked body with 413 at %s',
    async (path) => {
      expect(await sendInChunks(path, big)).toBe(413);
      expect(handled).toEqual([]);
    },
  );

  test('accepts exactly 1 MB and rejects a byte more', async () => {
    const body = `${' '.repeat(1024 * 1024 - 2)}{}`;
    expect(await sendInChunks('/change', body)).toBe(200);
    expect(await sendInChunks('/change', ` ${body}`)).toBe(413);
  });
});

describe('authentication', { tags: 'attack' }, () => {
  test.each([
    ['session', {}, 401, 'Unauthorized'],
    ['session', { cookie: 'service-session=wrong' }, 401, 'Unauthorized'],
    ['internal', {}, 401, 'Unauthorized'],
    ['internal', { authorization: INTERNAL_KEY }, 401, 'Unauthorized'],
    ['internal', { authorization: `Basic ${INTERNAL_KEY}` }, 401, 'Unauthorized'],
    ['internal', { cookie: `service-session=${INTERNAL_KEY}` }, 401, 'Unauthorized'],
    ['internal', bearer('wrong'), 403, 'Forbidden'],
    ['agent', bearer('wrong'), 401, 'Unauthorized'],
  ])('answers %s authentication with %j by %i %s', async (auth, headers, status, error) => {
    const { call } = await listen();
    const response = await call(`/me/${auth}?key=${INTERNAL_KEY}`, { headers });
    expect(response.status).toBe(status);
    expect(await response.json()).toEqual({ error });
  });

  test('refuses to start a listener without the authentication that its endpoints need', async () => {
    const listening = start([change], { authenticate: [] });
    await expect(listening).rejects.toThrow('the listener does not authenticate by session');
  });

  test('accepts the previous internal key during a rotation', async () => {
    const { call } = await listen();
    for (const key of [INTERNAL_KEY, PREVIOUS_KEY]) {
      expect((await call('/me/internal', { headers: bearer(key) })).status).toBe(200);
    }
  });

  test('reports a misconfiguration when no internal key is set', async () => {
    const { call } = await start([whoAmI(internalKey)], {
      authenticate: [internalKey.with([])],
    });
    const response = await call('/me/internal', { headers: bearer(INTERNAL_KEY) });
    expect(response.status).toBe(500);
    expect(await response.json()).toEqual({ error: 'Server misconfigured' });
  });

  test('answers 503 when the caller cannot be looked up, and 400 for an invalid user id', async () => {
    const { call } = await start([whoAmI(agentToken), whoAmI(internalKey)], {
      authenticate: [
        agentToken.with(() => Promise.reject(new UnavailableError('Too many waiting'))),
        internalKey.with([INTERNAL_KEY]),
      ],
    });
    expect((await call('/me/agent', { headers: bearer('any') })).status).toBe(503);
    const headers = { ...bearer(INTERNAL_KEY), 'x-user-id': 'x'.repeat(256) };
    expect((await call('/me/internal', { headers })).status).toBe(400);
  });

  test('lets the internal key act for a user', async () => {
    const { call } = await listen();
    const headers = {
      ...bearer(INTERNAL_KEY),
      'x-user-id': 'ada',
      'x-user-email': 'ada@example.com',
      'x-billing-subscription-id': 'sub',
    };
    expect(await (await call('/me/internal', { headers })).json()).toEqual({
      kind: 'internal',
      user: { id: 'ada', email: 'ada@example.com' },
      email: 'ada@example.com',
      subscriptionId: 'sub',
    });
  });

  test('ignores identity headers without the internal key', async () => {
    const { call } = await listen();
    const response = await call('/me/optional-session', { headers: { 'x-user-id': 'ada' } });
    expect(await response.json()).toEqual({ kind: 'anonymous' });
  });

  test('recognises a session cookie and an agent token', async () => {
    const { call } = await listen();
    const session = await call('/me/session', { headers: signedIn });
    expect(await session.json()).toMatchObject({ kind: 'session', user: { id: 'ada' } });
    const agent = await call('/me/agent', { headers: bearer('agent-token') });
    expect(await agent.json()).toEqual({ kind: 'agent', ...AGENT });
  });
});

describe('cross-site requests', { tags: 'attack' }, () => {
  test.each([
    [{}, 200],
    [{ 'sec-fetch-site': 'same-origin' }, 200],
    [{ 'sec-fetch-site': 'none' }, 200],
    [{ 'sec-fetch-site': 'cross-site' }, 403],
    [{ 'sec-fetch-site': 'same-site' }, 403],
    [{ origin: 'https://elsewhere.example' }, 403],
    [{ origin: 'null' }, 403],
    [{ origin: 'https://platform.example' }, 200],
    [{ 'sec-fetch-site': 'cross-site', 'x-csrf-token': 'wrong' }, 403],
    [{ 'sec-fetch-site': 'cross-site', 'x-csrf-token': CSRF_TOKEN }, 200],
  ])('answers a change with %j by %i', async (headers, status) => {
    const { call } = await start([change, whoAmI(anonymous)], {
      authenticate: [
        session.with({ find: findSession, publicUrl: 'https://platform.example' }),
        NO_API_KEYS,
      ],
    });
    // The plain client is used because fetch in Node sets its own Sec-Fetch headers.
    const response = await plainPost(call, { ...signedIn, ...headers });
    expect(response.status).toBe(status);
    if (status === 403) {
      expect(response.body).toEqual({
        error: 'Missing or invalid CSRF token',
        code: 'CSRF_TOKEN_REQUIRED',
      });
    }
    expect(handled).toHaveLength(status === 200 ? 1 : 0);
  });

  test('needs no CSRF token for reading', async () => {
    const { call } = await listen();
    const headers = { ...signedIn, origin: 'https://elsewhere.example' };
    expect((await call('/me/session', { headers })).status).toBe(200);
  });

  async function plainPost(call: TestListener['call'], headers: Record<string, string>) {
    const url = (await call('/me/none')).url.replace('/me/none', '/change');
    return new Promise<{ status: number | undefined; body: unknown }>((resolve, reject) => {
      const outgoing = request(url, { method: 'POST', headers }, (response) => {
        let text = '';
        response.on('data', (chunk: Buffer) => (text += chunk.toString()));
        response.on('end', () => {
          resolve({ status: response.statusCode, body: JSON.parse(text) as unknown });
        });
      });
      outgoing.on('error', reject);
      outgoing.end();
    });
  }
});

describe('errors', () => {
  test('masks an unknown error as 500 and logs it', async () => {
    const { call, log } = await listen();
    const response = await call('/notes/1', postJson({ name: 'crash' }, { 'x-request-id': 'r-1' }));
    expect(response.status).toBe(500);
    expect(await response.json()).toEqual({ error: 'Internal server error', requestId: 'r-1' });
    expect(JSON.stringify(log)).toContain('a secret detail');
  });

  test('keeps the status and text of a domain error', async () => {
    const { call } = await listen();
    const response = await call('/notes/1', postJson({ name: 'missing' }));
    expect(response.status).toBe(404);
    expect(await response.json()).toEqual({ error: 'No such note' });
  });

  test.each(['/wrong', '/undeclared-error'])(
    'fails on an undeclared answer of %s, but only logs the mismatch in production',
    async (path) => {
      const strict = await listen();
      expect((await strict.call(path)).status).toBe(500);

      const production = await start(endpoints, {
        settings: { ...HTTP_SETTINGS, production: true },
      });
      expect((await production.call(path)).status).toBe(path === '/wrong' ? 200 : 404);
      expect(production.log.map(({ msg }) => msg)).toContain('answer differs from its declaration');
      expect(JSON.stringify(production.log)).not.toContain('secret');
    },
  );
});

describe('all responses', () => {
  test("carry a request id, the client's own if valid", async () => {
    const { call } = await listen();
    const own = await call('/me/none', { headers: { 'x-request-id': 'abc-1' } });
    expect(own.headers.get('x-request-id')).toBe('abc-1');
    const made = await call('/nothing', { headers: { 'x-request-id': 'a b"c' } });
    expect(made.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  });

  test('carry security headers', async () => {
    const { call } = await listen();
    const { headers } = await call('/nothing');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('x-powered-by')).toBeNull();
  });

  test.each([
    [false, 'max-age=31536000'],
    [true, 'max-age=31536000; includeSubDomains'],
  ])('with HSTS_SUBDOMAINS=%s keep browsers on HTTPS by %s', async (hstsSubdomains, policy) => {
    const { call } = await start(endpoints, { settings: { ...HTTP_SETTINGS, hstsSubdomains } });
    const { headers } = await call('/nothing');
    expect(headers.get('strict-transport-security')).toBe(policy);
  });

  test('leave one log line each, without any client data', async () => {
    const { call, log } = await listen();
    const init = postJson({ name: 'private-body' }, { 'x-private': 'private-header' });
    await call('/notes/priv?color=red&private=query', init);
    await until(() => log.some(({ msg }) => msg === 'request'));
    const lines = log.filter(({ msg }) => msg === 'request');
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ method: 'POST', path: '/notes/:id', status: 400 });
    expect(JSON.stringify(log)).not.toMatch(/priv(?!ate)|private/);
  });
});

describe('listener socket', () => {
  test('reports a port in use clearly', async () => {
    const { port } = await listen();
    const { createListener } = await import('../../../api/http/listener.js');
    const { NO_DATABASE } = await import('./support.js');
    const { pino } = await import('pino');
    const second = createListener({
      name: 'second',
      title: 'Second',
      endpoints: [],
      limits: [],
      authenticate: [],
      database: NO_DATABASE,
      log: pino({ level: 'silent' }),
      settings: HTTP_SETTINGS,
    });
    const failure = second.listen('127.0.0.1', port, 'WEB_PORT');
    await expect(failure).rejects.toBeInstanceOf(ListenError);
    await expect(failure).rejects.toThrow(
      `Cannot listen on 127.0.0.1:${port}: the port is used by another program; set WEB_PORT to another port`,
    );
  });

  test('sends no answer to refused networks', async () => {
    const { call } = await start(endpoints, { refuseFrom: ['127.0.0.0/8'] });
    await expect(call('/me/none')).rejects.toThrow();
  });

  test('completes requests in flight while closing and accepts no new requests', async () => {
    let release: () => void = () => undefined;
    let entered = false;
    const slow = endpoint({
      method: 'GET',
      path: '/slow',
      summary: 'Waits',
      tag: 'slow',
      auth: anonymous,
      responses: { 200: z.strictObject({ ok: z.boolean() }) },
      async handler() {
        entered = true;
        await new Promise<void>((resolve) => (release = resolve));
        return reply(200, { ok: true });
      },
    });
    const listener = await serve([slow]);
    const answer = listener.call('/slow');
    await until(() => entered);
    const closed = listener.close();
    await expect(listener.call('/me/none')).rejects.toThrow();
    release();
    expect((await answer).status).toBe(200);
    await closed;
  });

  test("aborts the handler's signal when the client disconnects", async () => {
    let gone = false;
    let entered = false;
    const waiting = endpoint({
      method: 'GET',
      path: '/waiting',
      summary: 'Waits for the client to disconnect',
      tag: 'slow',
      auth: anonymous,
      responses: { 200: 'stream' },
      handler({ signal }) {
        entered = true;
        signal.addEventListener('abort', () => (gone = true));
        async function* endless() {
          yield 'first';
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
        }
        return streamReply(200, endless(), 'text/plain');
      },
    });
    const { call } = await start([waiting]);
    const controller = new AbortController();
    const response = await call('/waiting', { signal: controller.signal });
    expect(response.headers.get('content-type')).toContain('text/plain');
    await until(() => entered);
    controller.abort();
    await until(() => gone);
  });

  test("stays below Node's listener limit on one response", async () => {
    const warnings: string[] = [];
    const note = (warning: Error) => warnings.push(warning.name);
    process.on('warning', note);
    const all = endpoint({
      method: 'POST',
      path: '/all',
      summary: 'Reads a body, limits concurrency, watches its client, streams',
      tag: 'slow',
      auth: session,
      body: z.strictObject({ name: z.string() }),
      atOnce: { name: 'all', perOwner: 1 },
      responses: { 200: 'stream' },
      handler({ signal }) {
        async function* chunks() {
          yield await Promise.resolve(`gone: ${signal.aborted}`);
        }
        return streamReply(200, chunks(), 'text/plain');
      },
    });
    const { call } = await start([all]);
    const asked = postJson({ name: 'x' }, { ...signedIn, 'x-csrf-token': CSRF_TOKEN });
    expect(await (await call('/all', asked)).text()).toBe('gone: false');
    await new Promise(setImmediate);
    process.off('warning', note);
    expect(warnings).toEqual([]);
  });
});
