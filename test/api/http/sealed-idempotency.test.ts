// @module-tag attack
import { selectFrom, type RowOf } from '../../../src/platform/database/schema/table.js';
import { idempotencyKeys } from '../../../src/platform/database/tables/records.js';
import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import { anonymous } from '../../../api/auth/anonymous.js';
import { backendEndpoints } from '../../../api/backend/backend.js';
import { agentAiEndpoints } from '../../../api/containers/ai.js';
import { endpoint } from '../../../api/http/endpoint.js';
import { hashRequest } from '../../../api/http/idempotency.js';
import { reply } from '../../../api/http/reply.js';
import { accountEndpoints } from '../../../api/web/accounts.js';
import { webEndpoints } from '../../../api/web/web.js';
import { BadRequestError } from '../../../src/lib/errors.js';
import { databaseAlone } from '../../support/dependencies.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { postJson, serve, type TestListener } from './support.js';

let database: TestDatabase;
let alone: Awaited<ReturnType<typeof databaseAlone>>;
let listener: TestListener;
let made: string[] = [];

const secretThings = endpoint({
  method: 'POST',
  path: '/secrets',
  summary: 'Make a secret',
  tag: 'things',
  auth: anonymous,
  idempotent: true,
  body: z.strictObject({ name: z.string() }),
  responses: { 201: z.strictObject({ secret: z.string() }) },
  handler({ body }) {
    if (body.name === 'bad') throw new BadRequestError('a private refusal');
    made.push(randomBytes(32).toString('base64url'));
    return reply(201, { secret: made.at(-1) ?? '' });
  },
});

const make = (name: string, key: string) =>
  listener.call('/secrets', postJson({ name }, { 'idempotency-key': key }));

const kept = () =>
  database.db.asPlatform().query<RowOf<typeof idempotencyKeys>>(selectFrom(idempotencyKeys));

const statement = (sql: string) => database.db.asPlatform().query(sql);

beforeAll(async () => {
  database = await testDatabase();
  alone = await databaseAlone(database);
  const { secrets } = alone.dependencies;
  const accounts = accountEndpoints(alone.dependencies);
  listener = await serve([secretThings, ...accounts], { database: database.db, secrets });
});

afterAll(async () => {
  await listener?.close();
  await alone?.close();
  await database?.close();
});

afterEach(async () => {
  made = [];
  await statement('DELETE FROM idempotency_keys');
});

test('replays a secret answer byte for byte and stores it sealed', async () => {
  const first = await (await make('a', 'k')).text();
  const again = await make('a', 'k');
  expect([again.status, await again.text()]).toEqual([201, first]);
  expect(again.headers.get('idempotent-replayed')).toBe('true');
  expect(made).toHaveLength(1);
  const [row, ...others] = await kept();
  expect(others).toEqual([]);
  expect(row?.state).toBe('done');
  expect(JSON.stringify(row)).not.toContain(made[0]);
  expect(JSON.stringify(row)).not.toContain('secret"');
});

test('stores no digest of a registration by which the password could be guessed', async () => {
  const body = { email: 'ada@example.com', password: 'an-old-password' };
  const request = postJson(body, { 'idempotency-key': 'r', 'user-agent': 'test' });
  expect((await listener.call('/api/register', request)).status).toBe(200);
  const [row] = await kept();
  expect(row?.requestHash).not.toBe(hashRequest(undefined, undefined, body));
  expect((await listener.call('/api/register', request)).headers.get('idempotent-replayed')).toBe(
    'true',
  );
});

test('seals stored answers and request digests of all idempotent endpoints', async () => {
  const { dependencies } = alone;
  const declared = [
    ...webEndpoints(dependencies),
    ...backendEndpoints(dependencies),
    ...agentAiEndpoints(dependencies),
  ].filter(({ idempotent }) => idempotent);
  expect(declared.length).toBeGreaterThan(10);
  // The endpoints as declared, except for authentication, input and handler.
  const answering = declared.map(({ method, path, idempotent }, index) =>
    endpoint({
      method,
      idempotent,
      summary: '',
      tag: 'any',
      auth: anonymous,
      path: `/${index}${path.replaceAll(':', '')}`,
      body: z.unknown(),
      responses: { 200: z.unknown() },
      handler: () => reply(200, { secret: 'the answer' }),
    }),
  );
  const all = await serve(answering, { database: database.db, secrets: dependencies.secrets });
  const body = { password: 'the question' };
  for (const { method, path } of answering) {
    const request = { ...postJson(body, { 'idempotency-key': 'k' }), method };
    expect((await all.call(path, request)).status).toBe(200);
  }
  await all.close();
  const rows = await kept();
  expect(rows).toHaveLength(declared.length);
  expect(JSON.stringify(rows)).not.toContain('the answer');
  expect(JSON.stringify(rows)).not.toContain(hashRequest(undefined, undefined, body));
});

test('stores no request digest that can be guessed', async () => {
  await make('a', 'k');
  const [row] = await kept();
  expect(row?.requestHash).toMatch(/^[0-9a-f]{64}$/);
  expect(row?.requestHash).not.toBe(hashRequest(undefined, undefined, { name: 'a' }));
});

test('rejects a different request with the same key with 422 without running it', async () => {
  await make('a', 'k');
  expect((await make('b', 'k')).status).toBe(422);
  expect(made).toHaveLength(1);
});

test('stores a refusal sealed too', async () => {
  await make('bad', 'k');
  const again = await make('bad', 'k');
  expect([again.status, await again.json()]).toEqual([400, { error: 'a private refusal' }]);
  expect(JSON.stringify(await kept())).not.toContain('private');
});

test('refuses a sealed answer that was moved to another key', async () => {
  await make('a', 'k');
  await make('a', 'l');
  await statement(`UPDATE idempotency_keys SET body =
    (SELECT body FROM idempotency_keys WHERE key = 'k') WHERE key = 'l'`);
  const moved = await make('a', 'l');
  const text = await moved.text();
  expect(moved.status).toBe(500);
  expect(made.filter((secret) => text.includes(secret))).toEqual([]);
  expect((await make('a', 'k')).status).toBe(201);
});
