// @module-tag attack
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  AnswerDroppedError,
  IdempotencyStore,
  type AnswerBounds,
} from '../../../src/platform/idempotency/idempotency-store.js';
import { UnprocessableError } from '../../../src/lib/errors.js';
import { Retention } from '../../../src/retention/retention.js';
import { loadSettings } from '../../../src/settings.js';
import { queryRows } from '../database/catalog.js';
import { insertSql, ROWS } from '../database/rows.js';
import { testEnvironment } from '../../support/platform-environment.js';
import { testSecrets } from '../../support/secrets.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

const KIB = 1024;
const MIB = 1024 * KIB;

/** Bounds that a test reaches quickly; the total is out of reach unless a test sets it. */
const SMALL: AnswerBounds = { perOwner: 64 * KIB, total: 1_024 * MIB, checkEvery: 1 };

const secrets = testSecrets();
let database: TestDatabase;
let retention: Retention;
let runs: string[] = [];

beforeAll(async () => {
  database = await testDatabase();
  const settings = loadSettings(testEnvironment({ DATABASE_URL: database.url }));
  retention = new Retention(database.db, settings.retention);
});
afterAll(() => database?.close());
afterEach(async () => {
  runs = [];
  await owner('DELETE FROM idempotency_keys');
  await owner('DELETE FROM kept_answers');
});

const owner = <Row extends object>(sql: string) => queryRows<Row>(database.ownerUrl, sql);

const storeOf = (bounds?: Partial<AnswerBounds>) =>
  new IdempotencyStore(database.db, secrets, bounds);

const route = 'POST /things';

/** Sends a request whose answer has about `length` bytes, a third of which are its text. */
async function send(store: IdempotencyStore, caller: string, key: string, length = 9 * KIB) {
  const outcome = await store.once(
    { caller, route, key, requestHash: key },
    () => {
      runs.push(key);
      return Promise.resolve(key.padEnd(Math.floor((length * 3) / 4), '.'));
    },
    (body) => ({ status: 200, headers: { Location: '/things/1' }, body }),
  );
  return outcome.kind === 'kept' ? outcome.kept.body?.replaceAll('.', '') : outcome.kind;
}

/** Returns the sums of owners, as stored and as they are. */
async function sums() {
  const ownerOf = `regexp_replace(caller, '^(internal|claimed):', '')`;
  const [counted, real] = await Promise.all([
    owner<{ owner: string; bytes: number }>(
      'SELECT owner, bytes::float8 AS bytes FROM kept_answers WHERE bytes <> 0 ORDER BY owner',
    ),
    owner<{ owner: string; bytes: number }>(
      `SELECT ${ownerOf} AS owner, sum(bytes)::float8 AS bytes FROM idempotency_keys
        WHERE bytes > 0 GROUP BY 1 ORDER BY 1`,
    ),
  ]);
  expect(counted).toEqual(real);
  // As JSON: the quoted body, and the headers without the spaces that the database writes.
  const sizes = await owner<{ bytes: number; size: number }>(
    `SELECT bytes, octet_length(body::text) + octet_length(replace(headers::text, ' ', '')) AS size
       FROM idempotency_keys WHERE body IS NOT NULL`,
  );
  expect(sizes.map(({ bytes }) => bytes)).toEqual(sizes.map(({ size }) => size));
  return Object.fromEntries(counted.map((each) => [each.owner, each.bytes]));
}

const states = async () =>
  (
    await owner<{ state: string; count: number }>(
      `SELECT state, count(*)::int AS count FROM idempotency_keys GROUP BY state ORDER BY state`,
    )
  ).map(({ count, state }) => `${count} ${state}`);

const keys = (count: number) => Array.from({ length: count }, (_, n) => `k${n}`);

describe('the answers of one owner', () => {
  test('counts the bytes of each owner exactly during concurrent requests and removals', async () => {
    const store = storeOf({ ...SMALL, perOwner: 40 * KIB, total: 100 * KIB });
    const callers = [
      'ada',
      'internal:ada',
      'claimed:ada',
      'bob',
      'anonymous:192.0.2.1',
      'internal',
    ];
    const sent = callers.flatMap((caller) =>
      keys(20).map((key, n) => send(store, caller, key, (n % 7) * 3 * KIB)),
    );
    const removing = keys(20).map(() => retention.removeSome('answers'));
    await owner(`UPDATE idempotency_keys SET created_at = created_at - interval '25 hours'`);
    await Promise.all([...sent, ...removing]);
    expect(runs).toHaveLength(120);
    const held = await sums();
    for (const bytes of Object.values(held)) expect(bytes).toBeLessThanOrEqual(40 * KIB);
    await owner(`UPDATE idempotency_keys SET created_at = created_at - interval '25 hours'`);
    expect(await retention.removeSome('answers')).toBeGreaterThan(0);
    expect(await sums()).toEqual({});
    expect(await retention.removeSome('sums-of-answers')).toBeGreaterThan(0);
    expect(await owner('SELECT FROM kept_answers')).toEqual([]);
  });

  test('drops the oldest answers beyond the bound of their owner, and runs none of them again', async () => {
    const store = storeOf(SMALL);
    await send(store, 'bob', 'of-bob');
    for (const key of keys(8)) await send(store, 'ada', key);
    const { ada = 0, bob = 0 } = await sums();
    expect(ada).toBeLessThanOrEqual(SMALL.perOwner);
    expect(ada).toBeGreaterThan(SMALL.perOwner / 2);
    expect(bob).toBeGreaterThan(0);
    expect(await states()).toEqual(['7 done', '2 dropped']);
    runs = [];
    for (const key of ['k0', 'k1']) {
      await expect(send(store, 'ada', key)).rejects.toThrow(AnswerDroppedError);
    }
    for (const key of ['k2', 'k7']) expect(await send(store, 'ada', key)).toBe(key);
    expect(await send(store, 'bob', 'of-bob')).toBe('of-bob');
    expect(runs).toEqual([]);
  });

  test('counts calls with the internal key and by a session for one owner', async () => {
    const store = storeOf(SMALL);
    for (const key of keys(8)) {
      await send(store, 'ada', key);
      await send(store, 'internal:ada', key);
    }
    const held = await sums();
    expect(Object.keys(held)).toEqual(['ada']);
    expect(held['ada']).toBeLessThanOrEqual(SMALL.perOwner);
  });

  test('refuses another request with the key of a dropped answer', async () => {
    const store = storeOf(SMALL);
    for (const key of keys(8)) await send(store, 'ada', key);
    const other = { caller: 'ada', route, key: 'k0', requestHash: 'another' };
    const refused = store.once(
      other,
      () => Promise.resolve(),
      () => undefined,
    );
    await expect(refused).rejects.toThrow(UnprocessableError);
  });

  test('keeps no single answer over the bound, and drops no other for it', async () => {
    const store = storeOf(SMALL);
    await send(store, 'ada', 'small');
    await send(store, 'ada', 'large', 100 * KIB);
    expect(await states()).toEqual(['1 done', '1 dropped']);
    await expect(send(store, 'ada', 'large')).rejects.toThrow(AnswerDroppedError);
    expect(await send(store, 'ada', 'small')).toBe('small');
    await sums();
  });

  test('keeps 16 MiB for an owner', async () => {
    const store = storeOf();
    for (const key of keys(6)) await send(store, 'ada', key, 4 * MIB);
    const { ada = 0 } = await sums();
    expect(ada).toBeLessThanOrEqual(16 * MIB);
    expect(ada).toBeGreaterThan(11 * MIB);
    expect(await states()).toEqual(['3 done', '3 dropped']);
  });

  test('counts an answer once that a run stores twice, and treats a freed key as empty', async () => {
    const store = storeOf(SMALL);
    const request = { caller: 'ada', route, key: 'k', requestHash: 'k' };
    const answer = { status: 200, headers: {}, body: 'x'.repeat(9 * KIB) };
    await store.once(
      request,
      async ({ keep }) => {
        const again = () => database.db.asPlatform().transaction((db) => keep(db, answer));
        expect([await again(), await again()]).toEqual([true, true]);
      },
      () => answer,
    );
    const { ada = 0 } = await sums();
    expect(ada).toBeGreaterThan(9 * KIB);
    expect(ada).toBeLessThan(18 * KIB);
    await owner(`UPDATE idempotency_keys SET created_at = now() - interval '25 hours'`);
    const refused = store.once(
      { ...request, requestHash: 'another' },
      () => Promise.reject(new Error('cut')),
      () => undefined,
    );
    await expect(refused).rejects.toThrow('cut');
    expect(await sums()).toEqual({});
  });

  test('removes the stored sum of a deleted account', async () => {
    const id = randomUUID();
    await owner(insertSql('users', { ...ROWS['users']?.(id, 1) }));
    await send(storeOf(SMALL), id, 'k');
    await owner(`INSERT INTO account_deletions (user_id, request_id) VALUES ('${id}', 'r')`);
    await database.db.call({ text: 'SELECT erase_account($1, $2)' }, [id, 1_000]);
    expect(await owner('SELECT FROM kept_answers')).toEqual([]);
    expect(await states()).toEqual([]);
  });
});

describe('the answers of all owners', () => {
  test('drops answers of those who have most first, beyond the bound of all', async () => {
    const free = storeOf({ ...SMALL, checkEvery: 1_024 * MIB });
    const counts = { ada: 6, bob: 4, eve: 1, joe: 1 };
    for (const [caller, count] of Object.entries(counts)) {
      for (const key of keys(count)) await send(free, caller, key, 10 * KIB);
    }
    const before = await sums();
    // The four have about 120 KiB.
    const total = 80 * KIB;
    await send(storeOf({ ...SMALL, total }), 'joe', 'last', KIB);
    const after = await sums();
    expect(Object.values(after).reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(total);
    expect([after['eve'], after['joe']]).toEqual([before['eve'], expect.anything()]);
    expect(after['ada']).toBeLessThan(before['ada'] ?? 0);
    // Both are cut to the same level, in whole answers.
    expect(Math.abs((after['ada'] ?? 0) - (after['bob'] ?? 0))).toBeLessThan(11 * KIB);
    await expect(send(free, 'ada', 'k0')).rejects.toThrow(AnswerDroppedError);
    expect(await send(free, 'eve', 'k0')).toBe('k0');
  });

  test('drops answers of more owners than one statement visits', async () => {
    const free = storeOf({ ...SMALL, checkEvery: 1_024 * MIB });
    const callers = Array.from({ length: 250 }, (_, n) => `user-${n}`);
    await Promise.all(callers.map((caller) => send(free, caller, 'k', KIB)));
    const total = 16 * KIB;
    await send(storeOf({ ...SMALL, total }), 'last', 'k', KIB);
    const held = Object.values(await sums());
    expect(held.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(total);
  });

  test('examines the total only after the bytes between two checks', async () => {
    const store = storeOf({ ...SMALL, total: 0, checkEvery: 25 * KIB });
    for (const key of ['k0', 'k1']) await send(store, 'ada', key, 10 * KIB);
    expect(await states()).toEqual(['2 done']);
    await send(store, 'ada', 'k2', 10 * KIB);
    expect(await states()).toEqual(['3 dropped']);
  });
});
