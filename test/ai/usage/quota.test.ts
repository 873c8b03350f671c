import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { PLAN_LIMITS, type Plan } from '../../../src/types/plans.js';
import { Database } from '../../../src/platform/database/database.js';
import { Quota, QuotaExceededError } from '../../../src/ai/usage/quota.js';
import { settleAbandoned } from '../../../src/ai/usage/rollups.js';
import { settleUsage } from '../../../src/ai/usage/settle-usage.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { asOwner, balanceOf, rowsOf, THIS_MONTH, unbalanced, usageOf } from './ledger.js';
import { numbers } from './support.js';

const LIMIT = PLAN_LIMITS.solo.monthlyTokens;

let database: TestDatabase;
let elsewhere: Database;
let db: Database;
let quota: Quota;
/** Quota of another process. */
let other: Quota;
let settling: Promise<unknown>;

beforeAll(async () => {
  database = await testDatabase();
  db = database.db;
  elsewhere = new Database(database.url, { maxConnections: 5 });
});
afterAll(async () => {
  await elsewhere?.close();
  await database?.close();
});
beforeEach(async () => {
  const tables = 'usage_logs, usage_daily, usage_pending, quota_reservations, token_quotas';
  await asOwner(database.ownerUrl, `TRUNCATE ${tables}`);
  quota = new Quota(db);
  other = new Quota(elsewhere);
  settling = Promise.resolve();
});

interface Asked {
  readonly userId?: string;
  readonly plan?: Plan | undefined;
  readonly of?: Quota;
}

/** Reserves tokens for a new call. @returns the call's id. */
async function reserve(tokens: number, asked: Asked = {}): Promise<string> {
  const { userId = 'ada', of = quota } = asked;
  const callId = randomUUID();
  const plan = 'plan' in asked ? asked.plan : 'solo';
  await of.reserve({ callId, userId, plan, tokens });
  return callId;
}

/** Settles a call as the process that reserved it does: one after the other. */
function settle(callId: string, tokens: number, userId = 'ada', of = quota): Promise<unknown> {
  const used = { callId, userId, inputTokens: tokens, outputTokens: 0, ...of.settle(callId) };
  const over = of.drainEnded();
  settling = settling.then(() => settleUsage(db, [usageOf(used)], over));
  return settling;
}

/** Releases the reservation of a call that failed. */
function release(callId: string, of = quota): Promise<unknown> {
  of.release(callId);
  return settleUsage(db, [], of.drainEnded());
}

/** Returns everything that is reserved ahead. */
async function giveUp(of = quota): Promise<unknown> {
  await of.retireAll();
  return settleUsage(db, [], of.drainEnded());
}

/** Makes 40 calls and waits until no reservation ahead is in flight. */
async function callOften(tokens: number, of = quota): Promise<void> {
  const asked = vi.spyOn(of === quota ? db : elsewhere, 'call');
  for (let n = 0; n < 40; n++) await settle(await reserve(tokens, { of }), tokens, 'ada', of);
  await Promise.all(asked.mock.results.map(({ value }) => value));
  asked.mockRestore();
  // The reservation requested during the last call has replaced the previous one.
  await setImmediate();
  await settleUsage(db, [], of.drainEnded());
}

const reservations = async () => (await rowsOf(db, 'SELECT FROM quota_reservations')).length;

const admitted = (outcomes: readonly PromiseSettledResult<unknown>[]) =>
  outcomes.filter(({ status }) => status === 'fulfilled').length;

describe('1,000 concurrent calls', { tags: 'attack' }, () => {
  test('two processes admit exactly the calls that fit', async () => {
    const outcomes = await Promise.allSettled(
      Array.from({ length: 1_000 }, (_, n) => reserve(7_000, { of: n % 2 ? quota : other })),
    );
    expect(admitted(outcomes)).toBe(Math.floor(LIMIT / 7_000));
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') {
        expect(outcome.reason).toBeInstanceOf(QuotaExceededError);
      }
    }
    expect(await balanceOf(db, 'ada')).toEqual({ used: 0, held: 285 * 7_000 });
    expect(await reservations()).toBe(285);
  });

  test('calls of all sizes, each settled at its end, never exceed the quota of used and held tokens', async () => {
    const random = numbers(7);
    const sizes = Array.from({ length: 1_000 }, () => 1 + random(20_000));
    let over = 0;
    const watch = async () => {
      const { used, held } = await balanceOf(elsewhere, 'ada');
      if (used + held > LIMIT) over++;
    };
    const outcomes = await Promise.allSettled(
      sizes.map(async (tokens, n) => {
        const of = n % 2 ? quota : other;
        const callId = await reserve(tokens, { of });
        if (n % 50 === 0) await watch();
        await settle(callId, tokens, 'ada', of);
      }),
    );
    expect(admitted(outcomes)).toBeLessThan(1_000);
    expect(over).toBe(0);
    await Promise.all([giveUp(quota), giveUp(other)]);
    const { used, held } = await balanceOf(db, 'ada');
    expect(held).toBe(0);
    expect(used).toBeLessThanOrEqual(LIMIT);
    expect(used).toBeGreaterThan(LIMIT - 20_000);
    expect(await unbalanced(db)).toEqual([]);
  });
});

describe('held tokens', () => {
  test('calls may fill the month exactly, and not by one token more', async () => {
    await reserve(LIMIT - 1);
    await expect(reserve(2)).rejects.toThrow(QuotaExceededError);
    await reserve(1);
    await expect(reserve(1)).rejects.toThrow(QuotaExceededError);
  });

  test('tokens held for one user do not count for another', async () => {
    await reserve(LIMIT, { userId: 'ada' });
    await reserve(LIMIT, { userId: 'bob' });
    await expect(reserve(1, { userId: 'ada' })).rejects.toThrow(QuotaExceededError);
  });

  test('a refused call holds no tokens, even if it is the first', async () => {
    await expect(reserve(LIMIT + 1)).rejects.toThrow(QuotaExceededError);
    expect(await balanceOf(db, 'ada')).toEqual({ used: 0, held: 0 });
    await reserve(LIMIT);
  });

  test('a plan without quota holds no tokens, but its usage is counted', async () => {
    const calls = [await reserve(9e15, { plan: 'network' }), await reserve(5, { plan: undefined })];
    expect(await reservations()).toBe(0);
    for (const callId of calls) await settle(callId, 40);
    expect(await balanceOf(db, 'ada')).toEqual({ used: 80, held: 0 });
    expect(calls.map((callId) => quota.settle(callId))).toEqual([undefined, undefined]);
  });

  test.each([
    ['255 characters', 'x'.repeat(255)],
    ['255 characters of four bytes', '🦊'.repeat(255)],
    ['quotes', `'"; DROP TABLE users; -- \\`],
    ['braces', '{"userId": [null]}'],
    ['scripts of all directions', 'ümläut ñ 漢字 עברית\u200f'],
    ['the JSON literal null', 'null'],
  ])('holds tokens for the right user if the id consists of %s', async (_name, userId) => {
    const [first] = await Promise.all([reserve(10, { userId }), reserve(20, { userId: 'bob' })]);
    expect(await balanceOf(db, userId)).toEqual({ used: 0, held: 10 });
    await settle(first, 4, userId);
    expect(await balanceOf(db, userId)).toEqual({ used: 4, held: 0 });
    expect(await unbalanced(db)).toEqual([]);
  });
});

describe('ended call', () => {
  test.each([
    ['less', 40],
    ['more', 2_500],
    ['nothing', 0],
  ])(
    'a call counts with the tokens used if that is %s than the tokens held',
    async (_name, tokens) => {
      await settle(await reserve(1_000), tokens);
      expect(await balanceOf(db, 'ada')).toEqual({ used: tokens, held: 0 });
      expect(await unbalanced(db)).toEqual([]);
    },
  );

  test('a call counts once, however often it is settled', async () => {
    await callOften(10);
    const asked = vi.spyOn(db, 'call');
    const calls = [await reserve(10), await reserve(10)];
    // Includes requests for future calls, for which no call has waited.
    await Promise.all(asked.mock.results.map(({ value }) => value));
    asked.mockRestore();
    const before = await balanceOf(db, 'ada');
    const [usage] = calls.map((callId) => usageOf({ callId, ...quota.settle(callId) }));
    if (!usage) throw new TypeError('no call');
    await settleUsage(db, [usage, usage], []);
    await Promise.all([settleUsage(db, [usage], []), settleUsage(elsewhere, [usage], [])]);
    expect(await balanceOf(db, 'ada')).toEqual({ used: before.used + 5, held: before.held - 10 });
    expect(await unbalanced(db)).toEqual([]);
  });

  test('a call settled again with the end of its reservation counts once', async () => {
    const callId = await reserve(1_000);
    const usage = usageOf({ callId, ...quota.settle(callId) });
    const over = quota.drainEnded();
    await settleUsage(db, [usage, usage], over);
    await Promise.all([settleUsage(db, [usage], []), settleUsage(elsewhere, [usage], over)]);
    expect(over).toEqual([callId]);
    expect(await balanceOf(db, 'ada')).toEqual({ used: 5, held: 0 });
  });

  test('a failed call returns its held tokens once', async () => {
    const callId = await reserve(1_000, { userId: 'ada' });
    await reserve(10, { userId: 'ada', of: other });
    await release(callId);
    await settleUsage(db, [], [callId, randomUUID()]);
    expect(await balanceOf(db, 'ada')).toEqual({ used: 0, held: 10 });
    expect(await rowsOf(db, 'SELECT FROM usage_logs')).toEqual([]);
  });

  test('a call that names no reservation settles its own', async () => {
    const callId = await reserve(1_000);
    await reserve(10, { of: other });
    await settleUsage(db, [usageOf({ callId })], []);
    expect(await balanceOf(db, 'ada')).toEqual({ used: 5, held: 10 });
  });

  test('a call counts even if its process was considered dead before', async () => {
    const callId = await reserve(1_000);
    await silent([callId]);
    await settleAbandoned(db);
    await settle(callId, 600);
    expect(await balanceOf(db, 'ada')).toEqual({ used: 600, held: 0 });
    expect(await unbalanced(db)).toEqual([]);
  });
});

describe('tokens reserved ahead', () => {
  const heldAhead = async () => (await balanceOf(db, 'ada')).held;

  afterEach(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });

  test('reserves no tokens ahead at the first call, then a growing number, for little more than 15 calls at most', async () => {
    const ahead: number[] = [];
    for (let n = 0; n < 60; n++) {
      await settle(await reserve(10), 10);
      ahead.push(await heldAhead());
    }
    expect(ahead[0]).toBe(0);
    expect(ahead[1]).toBe(20);
    expect(Math.max(...ahead)).toBeGreaterThanOrEqual(150);
    // The rest of the previous reservation, plus the one requested in advance.
    expect(Math.max(...ahead)).toBeLessThanOrEqual((15 + 1 + 15 / 3) * 10);
    await giveUp();
    expect(await balanceOf(db, 'ada')).toEqual({ used: 600, held: 0 });
    expect(await unbalanced(db)).toEqual([]);
  });

  test('admits calls from the tokens reserved ahead, without a database request', async () => {
    await callOften(10);
    const ask = vi.spyOn(db, 'call');
    for (let n = 0; n < 100; n++) await reserve(10);
    expect(ask.mock.calls.length).toBeLessThan(100 / 8);
  });

  test('requests more tokens before they are used up, so that no call waits for a slow database', async () => {
    await callOften(10);
    await reserve(151); // exceeds what is reserved ahead: makes a new reservation of this size
    let answer = () => {};
    const slow = new Promise<void>((resolve) => (answer = resolve));
    const call = db.call.bind(db);
    const ask = vi.spyOn(db, 'call').mockImplementation(async (statement, values) => {
      await slow;
      return call(statement, values);
    });
    const asked = () => ask.mock.calls.length;
    let calls = 0;
    for (; asked() === 0 && calls < 15; calls++) await reserve(150);
    expect(calls).toBeLessThan(15);
    for (; calls < 15; calls++) await reserve(150);
    expect(asked()).toBe(1);
    answer();
    for (let n = 0; n < 10; n++) await reserve(150);
    expect(asked()).toBe(1);
  });

  test('a failed request for more tokens does not fail the call that was admitted', async () => {
    await callOften(10);
    await reserve(151); // and 15 more are reserved ahead
    const ask = vi.spyOn(db, 'call').mockRejectedValue(new RangeError('out'));
    for (let n = 0; n < 15; n++) await reserve(150);
    expect(ask).toHaveBeenCalled();
    await expect(reserve(150)).rejects.toThrow('out');
    ask.mockRestore();
    await reserve(10);
    await giveUp();
    expect(await unbalanced(db)).toEqual([]);
  });

  test('returns all tokens after a shared reservation of several calls has failed', async () => {
    await callOften(10);
    let answer = () => {};
    const slow = new Promise<void>((resolve) => (answer = resolve));
    const call = db.call.bind(db);
    const ask = vi.spyOn(db, 'call');
    ask.mockImplementationOnce(async (statement, values) => {
      await slow;
      return call(statement, values);
    });
    ask.mockRejectedValueOnce(new RangeError('out'));
    const label = { plan: 'label' } as const;
    const first = reserve(5_000, label);
    // The first of these fits into the reservation just requested, the second does not.
    const both = [reserve(4_000, label), reserve(500_000, label)];
    answer();
    quota.release(await first);
    const reasons = await Promise.all(both.map((call) => call.catch(String)));
    expect(reasons).toEqual(['RangeError: out', 'RangeError: out']);
    ask.mockRestore();
    await giveUp();
    expect(await reservations()).toBe(0);
    expect(await unbalanced(db)).toEqual([]);
  });

  test('reserves ahead less than a hundredth of the remaining quota', async () => {
    await callOften(10);
    await giveUp();
    await reserve(LIMIT - 400 - 150 * 100 - 10 + 1);
    await callOften(10);
    expect(await heldAhead()).toBeLessThan(LIMIT - 400 - 100 * 100);
    await giveUp();
    const { used, held } = await balanceOf(db, 'ada');
    await reserve(LIMIT - used - held - 10, { of: other });
    await reserve(10);
    await expect(reserve(1)).rejects.toThrow(QuotaExceededError);
    await expect(reserve(1, { of: other })).rejects.toThrow(QuotaExceededError);
  });

  test('returns tokens reserved ahead when the user stops calling, but not those of calls in flight', async () => {
    await callOften(10);
    const under = await reserve(10);
    quota.retireIdle();
    expect(quota.drainEnded()).toEqual([]);
    quota.retireIdle();
    expect(quota.hasOver).toBe(false);
    await settle(under, 7);
    expect(await balanceOf(db, 'ada')).toEqual({ used: 407, held: 0 });
    expect(await reservations()).toBe(0);
  });

  test('keeps tokens reserved ahead while the user continues to call', async () => {
    await callOften(10);
    for (let n = 0; n < 10; n++) {
      quota.retireIdle();
      await settle(await reserve(10), 10);
    }
    expect(await heldAhead()).toBeGreaterThan(0);
  });

  test('adds the tokens of a failed call to those reserved ahead', async () => {
    await callOften(10);
    const held = await heldAhead();
    for (let n = 0; n < 100; n++) quota.release(await reserve(10));
    expect(await heldAhead()).toBe(held);
    expect(quota.hasOver).toBe(false);
  });

  test('returns the tokens reserved ahead when a call needs more', async () => {
    await callOften(10);
    const under = await reserve(10);
    const ahead = await heldAhead();
    await reserve(1_000);
    expect(await heldAhead()).toBe(ahead + 1_000 * 16);
    await settle(under, 10);
    expect(await heldAhead()).toBe(1_000 * 16);
  });

  test('uses no tokens reserved ahead for a call on another plan', async () => {
    await callOften(10);
    const ask = vi.spyOn(db, 'call');
    await reserve(10, { plan: 'label' });
    expect(ask).toHaveBeenCalledOnce();
  });

  test.each([
    ['after half a minute', '2031-05-05T12:00:00Z', '2031-05-05T12:00:29Z', '2031-05-05T12:00:31Z'],
    ['in the next month', '2031-12-31T23:59:50Z', '2031-12-31T23:59:59Z', '2032-01-01T00:00:00Z'],
  ])('uses no tokens reserved ahead %s', async (_name, made, before, after) => {
    vi.useFakeTimers({ toFake: ['Date'], now: new Date(made) });
    await callOften(10);
    await reserve(151); // makes the next reservation now
    const ask = vi.spyOn(db, 'call');
    vi.setSystemTime(new Date(before));
    await reserve(10);
    expect(ask).not.toHaveBeenCalled();
    vi.setSystemTime(new Date(after));
    await reserve(10);
    expect(ask).toHaveBeenCalledOnce();
  });

  test('calls count with their usage even if the tokens reserved ahead have expired', async () => {
    await callOften(10);
    const calls = [await reserve(10), await reserve(10)];
    const { used } = await balanceOf(db, 'ada');
    await asOwner(
      database.ownerUrl,
      `UPDATE quota_reservations SET expires_at = now() - interval '1 second'`,
    );
    await settleAbandoned(db);
    expect(await heldAhead()).toBe(0);
    for (const callId of calls) await settle(callId, 4);
    await giveUp();
    expect(await balanceOf(db, 'ada')).toEqual({ used: used + 8, held: 0 });
    expect(await unbalanced(db)).toEqual([]);
  });
});

/** Expires the reservations of these calls, as if their process had stopped renewing them. */
const silent = (calls: readonly string[]) =>
  asOwner(
    database.ownerUrl,
    `UPDATE quota_reservations SET expires_at = now() - interval '1 second'
      WHERE call_id IN (${calls.map((id) => `'${id}'`).join()})`,
  );

describe('calls of a process', () => {
  test('returns the tokens held by a silent process, and of no other', async () => {
    const gone = [await reserve(10, { of: other }), await reserve(20, { of: other })];
    await reserve(40);
    await silent(gone);
    expect(await settleAbandoned(db)).toBe(2);
    expect(await balanceOf(db, 'ada')).toEqual({ used: 0, held: 40 });
    expect(await settleAbandoned(db)).toBe(0);
  });

  test('keeps the tokens held by a process that renews them', async () => {
    const calls = [await reserve(10), await reserve(20, { userId: 'bob' })];
    await silent(calls);
    await quota.keep();
    expect(await settleAbandoned(db)).toBe(0);
    expect(await balanceOf(db, 'ada')).toEqual({ used: 0, held: 10 });
    expect(await balanceOf(db, 'bob')).toEqual({ used: 0, held: 20 });
  });

  test("a process renews neither another process's reservations nor those of ended calls", async () => {
    const [mine, over] = [await reserve(10), await reserve(20, { userId: 'bob' })];
    const theirs = await reserve(40, { of: other });
    quota.release(over);
    await quota.retireAll();
    await silent([mine, over, theirs]);
    await quota.keep();
    expect(await settleAbandoned(db)).toBe(2);
    expect(await balanceOf(db, 'ada')).toEqual({ used: 0, held: 10 });
    expect(await balanceOf(db, 'bob')).toEqual({ used: 0, held: 0 });
  });

  test('returns the tokens of calls whose process never received the answer', async () => {
    const calls = JSON.stringify([
      { callId: randomUUID(), userId: 'ada', tokens: 5, extra: 0, limit: 9 },
    ]);
    await db.call({ text: 'SELECT hold_tokens(-1, $1)' }, [calls]);
    await quota.keep();
    expect(await settleAbandoned(db)).toBe(1);
    expect(await balanceOf(db, 'ada')).toEqual({ used: 0, held: 0 });
  });
});

describe('quota month', () => {
  const LAST = `(${THIS_MONTH} - interval '1 month')::date`;

  const lastMonth = async () => {
    const [row] = await rowsOf<{ month: string }>(db, `SELECT ${LAST}::text AS month`);
    return row?.month ?? '';
  };

  test('the quota month is the calendar month in UTC', async () => {
    await reserve(1);
    const [row] = await rowsOf(db, 'SELECT month::text FROM token_quotas');
    expect(row).toEqual({ month: `${new Date().toISOString().slice(0, 7)}-01` });
  });

  test('a month starts with no usage, regardless of the usage of the previous month', async () => {
    const values = `'ada', ${LAST}, ${LIMIT}, 1000`;
    await asOwner(database.ownerUrl, `INSERT INTO token_quotas VALUES (${values})`);
    await reserve(LIMIT);
  });

  test('a call counts in the month of its reservation, even if it ends in the next', async () => {
    const callId = await reserve(1_000);
    await asOwner(database.ownerUrl, `UPDATE quota_reservations SET month = ${LAST}`);
    await asOwner(database.ownerUrl, `UPDATE token_quotas SET month = ${LAST}`);
    await settle(callId, 400);
    expect(await balanceOf(db, 'ada', await lastMonth())).toEqual({ used: 400, held: 0 });
    expect(await balanceOf(db, 'ada')).toEqual({ used: 0, held: 0 });
    await reserve(LIMIT);
  });

  test('a call without quota counts in the month of its end', async () => {
    const month = await lastMonth();
    const last = usageOf({ at: `${month.slice(0, 7)}-28T23:59:59.999Z` });
    await settleUsage(db, [last, usageOf()], []);
    expect(await balanceOf(db, 'ada', month)).toEqual({ used: 5, held: 0 });
    expect(await balanceOf(db, 'ada')).toEqual({ used: 5, held: 0 });
    expect(await unbalanced(db)).toEqual([]);
  });
});

test('the error for an exceeded quota names the tokens used and the limit', async () => {
  await settle(await reserve(1_000), 1_500);
  await reserve(LIMIT - 2_000);
  const refused: unknown = await reserve(501).catch((error: unknown) => error);
  expect(refused).toMatchObject({
    status: 429,
    code: 'QUOTA_EXCEEDED',
    message:
      'Monthly token quota exceeded for plan "solo". Used 1999500 of 2000000 tokens. ' +
      'Quota resets at the start of next month.',
  });
});

test('many users that reserve, settle, renew and release concurrently never deadlock', async () => {
  const random = numbers(11);
  const users = Array.from({ length: 40 }, (_, n) => `user ${n}`);
  /** Makes calls in groups: a third succeed, a third fail, a third are never settled. */
  const calls = async (of: Quota, via: Database) => {
    for (let round = 0; round < 20; round++) {
      const usages = await Promise.all(
        Array.from({ length: 15 }, async () => {
          const userId = users[random(users.length)] ?? '';
          return usageOf({ userId, callId: await reserve(100, { userId, of }) });
        }),
      );
      const answered = usages
        .filter((_, n) => n % 3 === 0)
        .map((usage) => ({ ...usage, ...of.settle(usage.callId) }));
      for (const { callId } of usages.filter((_, n) => n % 3 === 1)) of.release(callId);
      if (round % 5 === 0) of.retireIdle();
      await settleUsage(via, answered, of.drainEnded());
    }
  };
  const maintain = async (of: Quota, via: Database) => {
    for (let pass = 0; pass < 20; pass++) {
      await of.keep();
      await asOwner(
        database.ownerUrl,
        `UPDATE quota_reservations SET expires_at = now() - interval '1 s'
          WHERE call_id = ANY (ARRAY(
            SELECT call_id FROM quota_reservations LIMIT 5 FOR UPDATE SKIP LOCKED))`,
      );
      await settleAbandoned(via);
    }
  };
  await Promise.all([
    ...Array.from({ length: 4 }, () => calls(quota, db)),
    ...Array.from({ length: 4 }, () => calls(other, elsewhere)),
    maintain(quota, db),
    maintain(other, elsewhere),
  ]);
  expect(await unbalanced(db)).toEqual([]);
});
