import { selectFrom, type RowOf } from '../../src/database/table.js';
import { idempotencyKeys } from '../../src/database/tables/records.js';
import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { anonymous } from '../../api/auth/anonymous.js';
import { endpoint } from '../../api/http/endpoint.js';
import { hashRequest } from '../../api/http/idempotency.js';
import { reply } from '../../api/http/reply.js';
import { BadRequestError } from '../../src/errors.js';
import { SecretBox } from '../../src/secrets/secret-box.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';
import { postJson, serve, type TestListener } from './support.js';

let database: TestDatabase;
let listener: TestListener;
let made: string[] = [];

const secretThings = endpoint({
  method: 'POST',
  path: '/secrets',
  summary: 'Make a secret',
  tag: 'things',
  auth: anonymous,
  idempotent: 'sealed',
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
  const secrets = new SecretBox(randomBytes(32));
  listener = await serve([secretThings], { database: database.db, secrets });
}, 60_000);

afterAll(async () => {
  await listener?.close();
  await database?.close();
});

afterEach(async () => {
  made = [];
  await statement('DELETE FROM idempotency_keys');
});

test('a secret answer is given again, the same bytes, and kept where nobody reads it', async () => {
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

test('what was asked cannot be guessed from what is kept', async () => {
  await make('a', 'k');
  const [row] = await kept();
  expect(row?.requestHash).toMatch(/^[0-9a-f]{64}$/);
  expect(row?.requestHash).not.toBe(hashRequest(undefined, undefined, { name: 'a' }));
});

test('another request with its key is 422, and makes nothing', async () => {
  await make('a', 'k');
  expect((await make('b', 'k')).status).toBe(422);
  expect(made).toHaveLength(1);
});

test('a refusal is kept sealed as well', async () => {
  await make('bad', 'k');
  const again = await make('bad', 'k');
  expect([again.status, await again.json()]).toEqual([400, { error: 'a private refusal' }]);
  expect(JSON.stringify(await kept())).not.toContain('private');
});

test('an answer that was put in the place of another does not open', async () => {
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
