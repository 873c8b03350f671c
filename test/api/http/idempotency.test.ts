import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { internalKey } from '../../../api/auth/internal-key.js';
import { optionalSession } from '../../../api/auth/optional-session.js';
import { endpoint } from '../../../api/http/endpoint.js';
import { reply } from '../../../api/http/reply.js';
import { BadRequestError, ConflictError, PaymentRequiredError } from '../../../src/lib/errors.js';
import {
  AnswerDroppedError,
  StillRunningError,
} from '../../../src/platform/idempotency/idempotency-store.js';
import { ringOf } from '../../../src/platform/secrets/key-ring.js';
import { SecretBox } from '../../../src/platform/secrets/secret-box.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { INTERNAL_KEY, postJson, serve, signedIn, type TestListener } from './support.js';
import { until } from '../../support/until.js';

let database: TestDatabase;
let listener: TestListener;
let runs: string[] = [];
let hold: Promise<void> | undefined;
let release: () => void = () => undefined;

const thing = {
  method: 'POST',
  summary: 'Make a thing',
  tag: 'things',
  idempotent: true,
  errors: [402],
  body: z.strictObject({ name: z.string() }),
  responses: { 201: z.strictObject({ name: z.string(), run: z.number(), id: z.string() }) },
} as const;

const things = endpoint({
  answerHeaders: ['Location'],
  ...thing,
  path: '/things',
  auth: optionalSession,
  async handler({ body, idempotencyId, signal }) {
    runs.push(idempotencyId);
    await hold;
    if (body.name === 'long' && runs.length === 1) {
      await once(signal, 'abort');
      throw signal.reason;
    }
    if (body.name === 'taken' && runs.length === 1)
      throw new ConflictError('thing is in use', 'NAME_TAKEN');
    if (body.name === 'unpaid' && runs.length === 1)
      throw new PaymentRequiredError('no credit', 'PLAN_REQUIRED');
    if (body.name === 'bad') throw new BadRequestError('name is bad');
    if (body.name === 'busy' && runs.length === 1) throw new StillRunningError(3);
    if (body.name === 'crash' && runs.length === 1) throw new Error('crashed');
    const made = { name: body.name, run: runs.length, id: idempotencyId };
    return reply(201, made, { Location: '/things/1', 'Set-Cookie': 'a=b' });
  },
});

const internalThings = endpoint({
  ...thing,
  path: '/internal',
  auth: internalKey,
  handler({ body, idempotencyId }) {
    runs.push(idempotencyId);
    return reply(201, { name: body.name, run: runs.length, id: idempotencyId });
  },
});

/** Things by the id of their request, as a table has them. */
const made = new Map<string, { name: string; run: number; id: string }>();

const found = endpoint({
  ...thing,
  path: '/found',
  auth: optionalSession,
  async handler({ body, idempotencyId: id, isAnswered, markAnswered }) {
    if (!isAnswered) {
      runs.push(id);
      made.set(id, { name: body.name, run: runs.length, id });
      await markAnswered?.();
    }
    const one = made.get(id);
    if (!one) throw new AnswerDroppedError();
    return reply(201, one);
  },
});

const make = (name: string, key: string, headers = {}) =>
  listener.call('/things', postJson({ name }, { 'idempotency-key': key, ...headers }));

const statement = (sql: string) => database.db.asPlatform().query(sql);

function holdHandlers(): void {
  hold = new Promise((resolve) => (release = resolve));
}

beforeAll(async () => {
  database = await testDatabase();
  const secrets = new SecretBox(ringOf(randomBytes(32)));
  listener = await serve([things, internalThings, found], { database: database.db, secrets });
});

afterAll(async () => {
  await listener?.close();
  await database?.close();
});

afterEach(async () => {
  release();
  hold = undefined;
  runs = [];
  await statement('DELETE FROM idempotency_keys');
});

test('replays the first answer with its headers but without its cookie', async () => {
  const first = await make('a', 'k');
  const again = await make('a', 'k');
  expect(again.status).toBe(201);
  expect(await again.text()).toBe(await first.text());
  expect(again.headers.get('location')).toBe('/things/1');
  expect(again.headers.get('set-cookie')).toBeNull();
  expect(again.headers.get('idempotent-replayed')).toBe('true');
  expect(first.headers.get('idempotent-replayed')).toBeNull();
  expect(runs).toHaveLength(1);
});

test('runs one of many concurrent requests and answers the others with 409 and Retry-After', async () => {
  holdHandlers();
  const all = Array.from({ length: 8 }, () => make('a', 'k'));
  const refused = await Promise.any(all);
  expect([refused.status, await refused.json()]).toMatchObject([
    409,
    { code: 'REQUEST_IN_FLIGHT' },
  ]);
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  release();
  const statuses = (await Promise.all(all)).map(({ status }) => status).sort();
  expect(statuses.filter((status) => status === 201).length).toBeGreaterThan(0);
  expect(runs).toHaveLength(1);
});

test('rejects a different request with the same key with 422, even while the first is in flight', async () => {
  holdHandlers();
  const first = make('a', 'k');
  await until(() => runs.length === 1);
  const other = await make('b', 'k');
  expect([other.status, await other.json()]).toMatchObject([
    422,
    { code: 'IDEMPOTENCY_KEY_REUSED' },
  ]);
  release();
  await first;
  expect((await make('b', 'k')).status).toBe(422);
});

test('replays a refusal', async () => {
  await make('bad', 'k');
  const again = await make('bad', 'k');
  expect(again.status).toBe(400);
  expect(await again.json()).toEqual({ error: 'name is bad' });
  expect(runs).toHaveLength(1);
});

test('stores no server error: a retry runs under the same id', async () => {
  expect((await make('crash', 'k')).status).toBe(500);
  expect((await make('crash', 'k')).status).toBe(201);
  expect(runs).toHaveLength(2);
  expect(runs[0]).toBe(runs[1]);
});

test('reserves the key for its request after a server error', async () => {
  expect((await make('crash', 'k')).status).toBe(500);
  expect((await make('b', 'k')).status).toBe(422);
  expect((await make('crash', 'k')).status).toBe(201);
});

test('runs again for an internal caller that stores the answer itself', async () => {
  const internal = { authorization: `Bearer ${INTERNAL_KEY}` };
  const keeping = { ...internal, 'x-answer-kept-by': 'caller' };
  for (const headers of [keeping, keeping]) expect((await send(headers)).status).toBe(201);
  expect(new Set(runs).size).toBe(1);
  expect(runs).toHaveLength(2);
  // The header has no effect without the internal key.
  for (let i = 0; i < 2; i++) await make('a', 'k2', { ...signedIn, 'x-answer-kept-by': 'caller' });
  expect(runs).toHaveLength(3);

  function send(headers: Record<string, string>) {
    return listener.call(
      '/internal',
      postJson({ name: 'a' }, { 'idempotency-key': 'k', ...headers }),
    );
  }
});

test('passes the key of a dead process to a retry once its lock has expired', async () => {
  holdHandlers();
  const dead = make('a', 'k');
  await until(() => runs.length === 1);
  await statement(`UPDATE idempotency_keys SET locked_until = now() - interval '1 s'`);
  release();
  hold = undefined;
  expect((await make('b', 'k')).status).toBe(422);
  const taken = await make('a', 'k');
  expect(taken.status).toBe(201);
  expect(runs).toHaveLength(2);
  await dead;
  expect(await (await make('a', 'k')).text()).toBe(await taken.text());
});

test('frees a key after a day', async () => {
  await make('a', 'k');
  await statement(`UPDATE idempotency_keys SET created_at = now() - interval '25 h'`);
  expect((await make('b', 'k')).status).toBe(201);
  expect(runs).toHaveLength(2);
});

describe('an answer that tables have', () => {
  const find = (name: string, key: string) =>
    listener.call('/found', postJson({ name }, { 'idempotency-key': key }));
  const rows = () =>
    database.db
      .asPlatform()
      .query<object>('SELECT state, body, headers, bytes FROM idempotency_keys');

  test('stores a mark in place of the answer, and a repetition finds the answer', async () => {
    const first = await find('a', 'k');
    expect(await rows()).toEqual([{ state: 'found', body: null, headers: null, bytes: 0 }]);
    const again = await find('a', 'k');
    expect([first.status, again.status]).toEqual([201, 201]);
    expect(await again.json()).toEqual(await first.json());
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(runs).toHaveLength(1);
  });

  test('refuses a repetition whose answer was evicted with 409, and does not run it', async () => {
    await find('a', 'k');
    made.clear();
    const again = await find('a', 'k');
    expect([again.status, await again.json()]).toEqual([
      409,
      { error: expect.stringContaining('is no longer kept'), code: 'ANSWER_NOT_KEPT' },
    ]);
    expect((await find('b', 'k')).status).toBe(422);
    expect(runs).toHaveLength(1);
  });

  test('frees the key after a day', async () => {
    await find('a', 'k');
    await statement(`UPDATE idempotency_keys SET created_at = now() - interval '25 h'`);
    expect((await find('b', 'k')).status).toBe(201);
    expect(runs).toHaveLength(2);
  });
});

test('separates equal keys of two callers', async () => {
  const anonymous = await make('a', 'k');
  const session = await make('a', 'k', signedIn);
  expect([anonymous.status, session.status]).toEqual([201, 201]);
  expect(new Set(runs).size).toBe(2);
});

test('runs every request without a key, each under its own id', async () => {
  for (let i = 0; i < 2; i++) await listener.call('/things', postJson({ name: 'a' }));
  expect(new Set(runs).size).toBe(2);
});

test.each(['x'.repeat(256), 'a b'])('rejects the key %s', async (key) => {
  const response = await make('a', key);
  expect(response.status).toBe(400);
  expect(runs).toEqual([]);
});

test('runs a request again after a 409 with Retry-After', async () => {
  const first = await make('busy', 'k-busy');
  expect([first.status, first.headers.get('retry-after')]).toEqual([409, '3']);
  const second = await make('busy', 'k-busy');
  expect([second.status, await second.json()]).toMatchObject([201, { name: 'busy', run: 2 }]);
});

test.each([
  ['taken', 409, 'thing is in use'],
  ['unpaid', 402, 'no credit'],
])('retries a request that was refused as %s', async (name, status, error) => {
  const first = await make(name, `k-${name}`);
  expect([first.status, await first.json()]).toMatchObject([status, { error }]);
  const second = await make(name, `k-${name}`);
  expect([second.status, await second.json()]).toMatchObject([201, { name, run: 2 }]);
});

test('runs a request again whose client disconnected before it was done', async () => {
  const leaving = new AbortController();
  const left = listener.call('/things', {
    ...postJson({ name: 'long' }, { 'idempotency-key': 'k-long' }),
    signal: leaving.signal,
  });
  await until(() => runs.length === 1);
  leaving.abort();
  await expect(left).rejects.toThrow();
  const again = await until(async () => {
    const answer = await make('long', 'k-long');
    return answer.status !== 409 && answer;
  });
  expect([again.status, await again.json()]).toMatchObject([201, { name: 'long', run: 2 }]);
});
