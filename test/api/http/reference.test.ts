import { randomBytes } from 'node:crypto';
import { afterEach, expect, test } from 'vitest';
import * as z from 'zod';
import { internalKey } from '../../../api/auth/internal-key.js';
import { anonymous } from '../../../api/auth/anonymous.js';
import { session } from '../../../api/auth/session.js';
import { endpoint } from '../../../api/http/endpoint.js';
import type { AnswerHeader } from '../../../api/http/answer-headers.js';
import { openApiDocument } from '../../../api/http/openapi.js';
import { nextPageLink, page as pageOf } from '../../../api/http/pagination.js';
import { reply } from '../../../api/http/reply.js';
import { encodeEvent, eventStream, type ServerEvent } from '../../../api/http/sse.js';
import { ringOf } from '../../../src/platform/secrets/key-ring.js';
import { SecretBox } from '../../../src/platform/secrets/secret-box.js';
import { resolved } from '../../fuzz/document.js';
import { serve, type TestListener } from './support.js';
import { until } from '../../support/until.js';

let open: TestListener | undefined;
afterEach(async () => {
  await open?.close();
  open = undefined;
});

const list = endpoint({
  method: 'GET',
  path: '/api/things/:kind',
  summary: 'List things',
  tag: 'things',
  auth: session,
  params: z.strictObject({ kind: z.string() }),
  query: z.strictObject(pageOf),
  responses: { 200: z.strictObject({ limit: z.number() }) },
  errors: [404],
  handler: ({ query }) => reply(200, { limit: query.limit }),
});

const create = endpoint({
  method: 'POST',
  path: '/api/things/:kind',
  summary: 'Make a thing',
  tag: 'things',
  auth: internalKey,
  idempotent: true,
  params: z.strictObject({ kind: z.string() }),
  body: z.strictObject({ name: z.string().min(1) }),
  responses: { 201: z.strictObject({ id: z.string() }), 202: 'empty' },
  handler: () => reply(201, { id: 'x' }),
});

const page = endpoint({
  method: 'GET',
  path: '/page',
  summary: 'A page',
  tag: 'things',
  auth: anonymous,
  query: z.strictObject(pageOf),
  responses: { 200: z.strictObject({ limit: z.number() }) },
  handler: ({ query }) => reply(200, { limit: query.limit }),
});

const positions = endpoint({
  method: 'GET',
  path: '/positions',
  summary: 'The position of a page',
  tag: 'things',
  auth: anonymous,
  query: z.strictObject(pageOf),
  responses: { 200: z.strictObject({ limit: z.number(), cursor: z.array(z.string()).optional() }) },
  handler: ({ query }) => reply(200, query),
});

const documentShape = z.object({
  openapi: z.literal('3.1.0'),
  info: z.object({ title: z.string(), version: z.string() }),
  paths: z.record(
    z.string().startsWith('/'),
    z.partialRecord(
      z.enum(['get', 'post', 'put', 'patch', 'delete']),
      z.object({
        security: z.array(z.record(z.string(), z.array(z.string()))),
        parameters: z.array(
          z.object({
            name: z.string(),
            in: z.enum(['path', 'query', 'header']),
            required: z.boolean(),
          }),
        ),
        requestBody: z
          .object({ required: z.boolean(), content: z.record(z.string(), z.unknown()) })
          .optional(),
        responses: z.record(
          z.string().regex(/^(\d{3}|default)$/),
          z.object({
            description: z.string(),
            headers: z.record(z.string(), z.object({ description: z.string() })),
          }),
        ),
      }),
    ),
  ),
  components: z.object({ securitySchemes: z.record(z.string(), z.object({ type: z.string() })) }),
});

test('lists every endpoint, status, parameter and limit in the OpenAPI document', async () => {
  const limit = {
    name: 'general',
    max: 5,
    windowMs: 60_000,
    message: 'slow down',
    below: '/api/',
  };
  const secrets = new SecretBox(ringOf(randomBytes(32)));
  open = await serve([list, create, page], { limits: [limit], secrets });
  const answer = await open.call('/openapi.json');
  const document = documentShape.parse(resolved(await answer.json()));
  const { get, post } = document.paths['/api/things/{kind}'] ?? {};

  expect(Object.keys(document.paths)).toEqual(['/api/things/{kind}', '/page']);
  expect(Object.keys(get?.responses ?? {})).toEqual([
    '200',
    '400',
    '401',
    '403',
    '404',
    '429',
    '503',
    'default',
  ]);
  expect(Object.keys(post?.responses ?? {})).toEqual(
    [201, 202, 400, 401, 403, 409, 413, 415, 422, 429, 503, 'default'].map(String),
  );
  expect(get?.parameters.map(({ name }) => name)).toEqual(['kind', 'limit', 'cursor']);
  expect(post?.parameters.map(({ name }) => name)).toEqual(['kind', 'Idempotency-Key']);
  expect(post?.requestBody?.required).toBe(true);
  const headersOf = (operation: typeof get, status: string) =>
    Object.keys(operation?.responses[status]?.headers ?? {});
  const limits = ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'];
  expect(headersOf(get, '200')).toEqual(['Link', 'X-Request-Id', ...limits]);
  expect(headersOf(post, '201')).toEqual(['Idempotent-Replayed', 'X-Request-Id', ...limits]);
  expect(headersOf(get, '429')).toEqual(['Retry-After', 'X-Request-Id', ...limits]);
  expect([get?.security, post?.security]).toEqual([[{ session: [] }], [{ internalKey: [] }]]);
});

test('refuses to send a header that the endpoint does not declare', async () => {
  const answering = (path: string, answerHeaders: readonly AnswerHeader[]) =>
    endpoint({
      method: 'GET',
      path,
      summary: 'An answer with a header',
      tag: 'things',
      auth: anonymous,
      responses: { 200: z.strictObject({}) },
      answerHeaders,
      handler: () => reply(200, {}, { 'X-Temporal-Run': 'run', 'Cache-Control': 'no-store' }),
    });
  open = await serve([answering('/declared', ['X-Temporal-Run']), answering('/undeclared', [])]);
  expect((await open.call('/declared')).status).toBe(200);
  expect((await open.call('/undeclared')).status).toBe(500);
  expect(JSON.stringify(open.log)).toContain('sent an undeclared answer: header X-Temporal-Run');
});

test('makes a component of each schema with an id, and refuses two with the same id', () => {
  const thing = z.strictObject({ name: z.string() }).meta({ id: 'Thing' });
  const showing = (path: string, schema: z.ZodType) =>
    endpoint({
      method: 'GET',
      path,
      summary: 'Things',
      tag: 'things',
      auth: anonymous,
      responses: { 200: schema },
      handler: () => reply(200, {}),
    });
  const both = [showing('/thing', thing), showing('/things', z.array(thing))];
  const document = openApiDocument({ title: 'Things', release: '1', endpoints: both, limits: [] });
  const refer = { $ref: '#/components/schemas/Thing' };
  const answer = (schema: object) => ({
    get: { responses: { 200: { content: { 'application/json': { schema } } } } },
  });
  expect(document).toMatchObject({
    paths: { '/thing': answer(refer), '/things': answer({ type: 'array', items: refer }) },
    components: { schemas: { Thing: { properties: { name: { type: 'string' } } } } },
  });
  const other = showing('/other', z.strictObject({}).meta({ id: 'Thing' }));
  expect(() =>
    openApiDocument({ title: '', release: '1', endpoints: [...both, other], limits: [] }),
  ).toThrow('two schemas of this document have the id Thing');
});

test('serves the reference page and all its assets from the listener', async () => {
  open = await serve([page]);
  const docs = await open.call('/docs');
  expect(docs.headers.get('content-security-policy')).toContain("script-src 'self'");
  const html = await docs.text();
  const parts = [...html.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, path = '']) => path);
  expect(parts).toHaveLength(3);
  for (const part of parts) {
    const answer = await open.call(part);
    expect([part, answer.status]).toEqual([part, 200]);
    expect((await answer.text()).length).toBeGreaterThan(20);
  }
});

test('limits a page to 50 items by default and 200 at most', async () => {
  open = await serve([page]);
  expect(await (await open.call('/page')).json()).toEqual({ limit: 50 });
  expect(await (await open.call('/page?limit=200')).json()).toEqual({ limit: 200 });
  for (const limit of ['0', '201', '-1', '1.5', 'x', '']) {
    expect((await open.call(`/page?limit=${limit}`)).status).toBe(400);
  }
});

test('links to the next page in a Link header, except on the last page', async () => {
  const position = ['2026-01-01T00:00:00.000Z', 'id'];
  const { Link = '' } = nextPageLink('/positions', { limit: 2, status: undefined }, position);
  expect(Link).toMatch(/^<\/positions\?limit=2&cursor=[\w-]+>; rel="next"$/);
  expect(nextPageLink('/positions', {}, undefined)).toEqual({});

  open = await serve([positions]);
  const following = await open.call(Link.slice(1, Link.indexOf('>')));
  expect(await following.json()).toEqual({ limit: 2, cursor: position });
});

const cursorOf = (position: unknown) => Buffer.from(JSON.stringify(position)).toString('base64url');

test.each([
  'x',
  'bnVsbA',
  cursorOf(['one']),
  cursorOf(['-271821-04-20', 'before all of PostgreSQL']),
])('rejects the forged cursor %s', async (cursor) => {
  open = await serve([positions]);
  const refused = await open.call(`/positions?cursor=${cursor}`);
  expect([refused.status, await refused.json()]).toEqual([400, { error: 'cursor is invalid' }]);
});

test('encodes an event line by line so that its data cannot forge another event', () => {
  const event = { id: '1', event: 'log', data: 'a\nb' };
  expect(encodeEvent(event)).toBe('id: 1\nevent: log\ndata: a\ndata: b\n\n');
  expect(encodeEvent({ data: { a: 1 } })).toBe('data: {"a":1}\n\n');
  expect(() => encodeEvent({ event: 'a\ndata: x' })).toThrow(TypeError);
});

function streaming(events: () => AsyncIterable<ServerEvent>, heartbeatMs?: number) {
  return endpoint({
    method: 'GET',
    path: '/events',
    summary: 'Events',
    tag: 'events',
    auth: anonymous,
    responses: { 200: 'stream' },
    handler: () => eventStream(events(), heartbeatMs),
  });
}

test('streams events in order, then ends', async () => {
  async function* events() {
    for (let id = 0; id < 100; id++) yield await Promise.resolve({ id: String(id), data: { id } });
  }
  open = await serve([streaming(events)]);
  const answer = await open.call('/events');
  expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  const ids = [...(await answer.text()).matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
  expect(ids).toEqual(Array.from({ length: 100 }, (_, id) => id));
});

test('sends comments on a silent stream and closes its source when the client disconnects', async () => {
  let left = false;
  const events: AsyncIterable<ServerEvent> = {
    [Symbol.asyncIterator]: () => ({
      next: () => new Promise(() => undefined),
      return: () => {
        left = true;
        return Promise.resolve({ done: true, value: undefined });
      },
    }),
  };
  open = await serve([streaming(() => events, 5)]);
  const controller = new AbortController();
  const answer = await open.call('/events', { signal: controller.signal });
  const reader = answer.body?.getReader();
  const first = await reader?.read();
  expect(new TextDecoder().decode(first?.value)).toContain(': heartbeat\n\n');
  controller.abort();
  await until(() => left);
});

test('pulls no more from a source than the client reads', async () => {
  let made = 0;
  async function* endless() {
    for (;;) yield await Promise.resolve({ data: 'x'.repeat(10_000), id: String(made++) });
  }
  open = await serve([streaming(endless)]);
  const controller = new AbortController();
  await open.call('/events', { signal: controller.signal });
  let before = -1;
  let still = 0;
  await until(() => {
    still = before === made ? still + 1 : 0;
    before = made;
    return still > 10;
  });
  expect(made).toBeLessThan(5_000);
  controller.abort();
});
