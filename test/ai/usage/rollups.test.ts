import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Database } from '../../../src/platform/database/database.js';
import { processInBatches } from '../../../src/ai/usage/in-batches.js';
import { rollUpUsage, settleAbandoned } from '../../../src/ai/usage/rollups.js';
import { queryRows } from '../../platform/database/catalog.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { naiveSums, randomCalls, settle, type Call } from './support.js';

let database: TestDatabase;
let db: Database;

beforeAll(async () => {
  database = await testDatabase();
  db = database.db;
});
afterAll(() => database?.close());
beforeEach(async () => {
  const tables =
    'usage_logs, usage_daily, usage_hourly, usage_pending, quota_reservations, token_quotas';
  await queryRows(database.ownerUrl, `TRUNCATE ${tables}`);
});

const DAYS = ['2026-02-27', '2026-02-28', '2026-03-01'];
const USERS = ['ada', 'bob'];
const some = (count: number, seed: number) =>
  randomCalls(count, seed, { users: USERS, days: DAYS });

const query = <Row extends object>(sql: string) => db.asPlatform().query<Row>(sql);

const pending = async () => (await query('SELECT id FROM usage_pending')).length;

/** Returns the daily sums, to be compared with `sums`. */
async function daily() {
  const rows = await query<Record<string, unknown>>(
    `SELECT user_id AS "userId", day::text AS day, agent_id AS "agentId", provider, model,
            input_tokens::float8 AS "inputTokens", output_tokens::float8 AS "outputTokens",
            (input_tokens + output_tokens)::float8 AS "totalTokens", cost_usd::float8 AS "costUsd",
            calls FROM usage_daily`,
  );
  return new Set(rows.map((row) => JSON.stringify(row)));
}
const sums = (calls: readonly Call[]) =>
  new Set(
    naiveSums(calls, ({ userId, at, agentId, provider, model }) => ({
      userId,
      day: at.slice(0, 10),
      agentId: agentId ?? '',
      provider,
      model,
    })).map((row) => JSON.stringify(row)),
  );

test('daily rows hold the sums of all calls, and late calls are added to their day', async () => {
  const first = some(300, 1);
  await settle(db, first);
  expect(await rollUpUsage(db)).toBeGreaterThan(0);
  expect(await daily()).toEqual(sums(first));
  expect(await pending()).toBe(0);

  const late = some(100, 2);
  await settle(db, late);
  expect(await daily()).toEqual(sums(first));
  await rollUpUsage(db);
  expect(await daily()).toEqual(sums([...first, ...late]));
});

test('hourly rows hold the sums of all calls', async () => {
  const calls = some(300, 9);
  await settle(db, calls.slice(0, 200));
  await rollUpUsage(db);
  await settle(db, calls.slice(200));
  await rollUpUsage(db);
  const rows = await query<{ hour: Date; agentId: string; calls: number; tokens: number }>(
    `SELECT user_id AS "userId", hour, agent_id AS "agentId", calls::float8 AS calls,
            tokens::float8 AS tokens, cost_usd::float8 AS "costUsd" FROM usage_hourly`,
  );
  const expected = naiveSums(calls, ({ userId, at, agentId }) => ({
    userId,
    hour: new Date(`${at.slice(0, 13)}:00:00Z`),
    agentId: agentId ?? '',
  })).map(({ totalTokens, inputTokens, outputTokens, ...sum }) => ({
    ...sum,
    tokens: totalTokens,
  }));
  const sorted = (all: readonly object[]) =>
    all.map((row) => JSON.stringify(asEntries(row))).sort();
  expect(sorted(rows)).toEqual(sorted(expected));
});

const asEntries = (row: object) => Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1));

test('a pass without new calls changes nothing', async () => {
  const calls = some(50, 3);
  await settle(db, calls);
  await rollUpUsage(db);
  expect(await rollUpUsage(db)).toBe(0);
  expect(await daily()).toEqual(sums(calls));
});

test('a call that is settled twice is counted once', async () => {
  const [call] = some(1, 4);
  if (!call) throw new TypeError('no call was generated');
  const twice = JSON.stringify([
    { callId: '00000000-0000-4000-8000-000000000001', endpoint: '/test', ...call },
  ]);
  for (let time = 0; time < 2; time++) {
    await db.call({ text: `SELECT settle_usage($1, '{}')` }, [twice]);
    await rollUpUsage(db);
  }
  expect(await daily()).toEqual(sums([call]));
});

test('passes that overlap with each other and with new calls count each call once', async () => {
  const batches = Array.from({ length: 30 }, (_, n) => some(40, 100 + n));
  const passes = async () => {
    for (let n = 0; n < 20; n++) {
      await db.call({ text: 'SELECT roll_up_usage(17)' }, []);
    }
  };
  const settling = Promise.all(batches.map((calls) => settle(db, calls)));
  await Promise.all([passes(), passes(), settling]);
  await Promise.all([rollUpUsage(db), rollUpUsage(db)]);
  expect(await daily()).toEqual(sums(batches.flat()));
  expect(await pending()).toBe(0);
});

test('a call whose transaction commits after later ones is counted', async () => {
  const [early, later] = [some(20, 5), some(20, 6)];
  await db.asPlatform().transaction(async (open) => {
    await settle(
      db,
      early.filter(({ userId }) => userId === 'ada'),
      open,
    );
    await settle(
      db,
      later.filter(({ userId }) => userId === 'bob'),
    );
    await rollUpUsage(db);
  });
  await rollUpUsage(db);
  expect(await daily()).toEqual(
    sums([
      ...early.filter(({ userId }) => userId === 'ada'),
      ...later.filter(({ userId }) => userId === 'bob'),
    ]),
  );
});

test('a failed pass leaves all its calls to the next one', async () => {
  // Sums of different users, so that passes do not wait for each other's rows.
  const calls = some(60, 7).map((call, n) => ({ ...call, userId: `user-${n}` }));
  await settle(db, calls);
  const before = await pending();
  const dies = db.asPlatform().transaction(async (open) => {
    await open.query('SELECT roll_up_usage(10)');
    // Rows locked by another pass are skipped: not waited for, and not counted twice.
    await db.call({ text: 'SELECT roll_up_usage(5)' }, []);
    throw new RangeError('on purpose');
  });
  await expect(dies).rejects.toThrow(RangeError);
  expect(await pending()).toBe(before - 5);
  await rollUpUsage(db);
  expect(await daily()).toEqual(sums(calls));
});

test('only the roll-up pass may change the sums', async () => {
  await settle(db, some(10, 8));
  for (const sql of ['DELETE FROM usage_pending', 'UPDATE usage_daily SET calls = 0']) {
    const refused = db.asPlatform().query(sql);
    await expect(refused).rejects.toMatchObject({ parent: { code: '42501' } });
  }
});

test('returns abandoned reservations and keeps those of living processes', async () => {
  const reserve = (seconds: number, callId: string) =>
    db.call({ text: 'SELECT hold_tokens($1, $2)' }, [
      seconds,
      JSON.stringify([{ callId, userId: 'ada', tokens: 10, extra: 0, limit: 100 }]),
    ]);
  await reserve(-1, '00000000-0000-4000-8000-000000000001');
  await reserve(-1, '00000000-0000-4000-8000-000000000002');
  await reserve(120, '00000000-0000-4000-8000-000000000003');
  expect(await settleAbandoned(db)).toBe(2);
  expect(await settleAbandoned(db)).toBe(0);
  expect(await query('SELECT held::int FROM token_quotas')).toEqual([{ held: 10 }]);
});

test('batched work ends with the first batch that is not full', async () => {
  const left = [5, 5, 3, 5];
  expect(await processInBatches(5, () => Promise.resolve(left.shift() ?? 0))).toBe(13);
  expect(left).toEqual([5]);
});
