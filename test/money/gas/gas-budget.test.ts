import { randomUUID } from 'node:crypto';
import type { Hex } from 'viem';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { TooManyRequestsError } from '../../../src/lib/errors.js';
import { GasSpentError, type WantedGas } from '../../../src/money/gas/gas-budget.js';
import { releaseGas, settleGas, type UsedGas } from '../../../src/money/gas/settle-gas.js';
import { queryRows } from '../../platform/database/catalog.js';
import { makeAccount } from '../../support/account.js';
import { newAddress } from '../splits/support.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { gasBudget, storedGas } from './support.js';

const attack = { tags: 'attack' };

let database: TestDatabase;
let ada: string;
let bob: string;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database?.close());
beforeEach(async () => {
  await queryRows(
    database.ownerUrl,
    'DELETE FROM gas_reservations; DELETE FROM pending_notifications',
  );
  [ada, bob] = [(await makeAccount(database.db)).id, (await makeAccount(database.db)).id];
});

const limits = { perOwner: 100, total: 250 };
const budget = () => gasBudget(database.db, limits);

const wantedBy = (userId: string | undefined, gas = 10n): WantedGas => ({
  cause: `test:${randomUUID()}`,
  gas,
  userId,
});

const opening = (wallet: Hex, client: string): WantedGas => ({
  ...wantedBy(undefined),
  opening: { wallet, client },
});

/** Reserves gas in a transaction of its own. @returns the cause of the payment. */
async function reserve(wanted: WantedGas, of = budget()): Promise<string> {
  const { userId } = wanted;
  const tenant = userId === undefined ? database.db.asPlatform() : database.db.asUser(userId);
  await of.notifying(() => tenant.statements((db) => of.reserve(db, wanted)));
  return wanted.cause;
}

/** Returns how a reservation ends: admitted, or refused with a status and facts. */
const outcome = (wanted: WantedGas, of = budget()): Promise<unknown> =>
  reserve(wanted, of).then(
    () => 'admitted',
    (error: unknown) => {
      if (error instanceof TooManyRequestsError || error instanceof GasSpentError) {
        return { status: error.status, ...error.facts };
      }
      throw error;
    },
  );

const countOf = async (work: readonly Promise<unknown>[]) =>
  (await Promise.all(work)).filter((each) => each === 'admitted').length;

const settle = (used: Partial<UsedGas> & Pick<UsedGas, 'cause'>) =>
  settleGas(database.db.asPlatform(), { failure: undefined, gas: undefined, ...used });

const notices = () =>
  queryRows<{ event: unknown }>(database.ownerUrl, 'SELECT event FROM pending_notifications');

describe('the gas of one owner', () => {
  test('admits exactly the gas of a day under 50 concurrent requests', attack, async () => {
    expect(await countOf(Array.from({ length: 50 }, () => outcome(wantedBy(ada))))).toBe(10);
    expect(await outcome(wantedBy(ada))).toEqual({
      status: 429,
      current: 100,
      limit: 100,
    });
    expect(await outcome(wantedBy(bob))).toBe('admitted');
  });

  test('admits an amount that reaches the limit, and refuses one more unit', async () => {
    await reserve(wantedBy(ada, 90n));
    expect(await outcome(wantedBy(ada, 11n))).toMatchObject({ status: 429, current: 90 });
    expect(await outcome(wantedBy(ada, 10n))).toBe('admitted');
  });

  test('begins at midnight UTC', async () => {
    await reserve(wantedBy(ada, 100n));
    await queryRows(
      database.ownerUrl,
      `UPDATE gas_reservations SET reserved_at = date_trunc('day', now(), 'UTC')`,
    );
    expect(await outcome(wantedBy(ada))).toMatchObject({ status: 429 });
    await queryRows(
      database.ownerUrl,
      `UPDATE gas_reservations SET reserved_at = reserved_at - interval '1 microsecond'`,
    );
    expect(await outcome(wantedBy(ada, 100n))).toBe('admitted');
  });

  test(
    'counts openings without an account for their wallet and for their client',
    attack,
    async () => {
      const [wallet, client] = [newAddress(), '192.0.2.1'];
      const ofWallet = Array.from({ length: 50 }, (_, n) =>
        outcome(opening(wallet, `198.51.100.${n}`)),
      );
      expect(await countOf(ofWallet)).toBe(10);
      const ofClient = Array.from({ length: 50 }, () => outcome(opening(newAddress(), client)));
      expect(await countOf(ofClient)).toBe(10);
      expect(await outcome(opening(newAddress(), client))).toMatchObject({
        status: 429,
        current: 100,
      });
      // An account has a budget of its own, from any client.
      expect(await outcome({ ...opening(wallet, client), userId: ada })).toBe('admitted');
    },
  );

  test("refuses to reserve gas in another user's name", attack, async () => {
    for (const name of [bob, undefined]) {
      const made = database.db.asUser(ada).statements((db) => budget().reserve(db, wantedBy(name)));
      await expect(made).rejects.toMatchObject({ parent: { code: '42501' } });
    }
    expect(await storedGas(database.db)).toEqual([]);
  });
});

describe('the gas of all', () => {
  test(
    'admits exactly the gas of all under 50 concurrent requests, and notifies operators once',
    attack,
    async () => {
      const users = [ada, bob, ...[1, 2, 3].map(() => undefined)];
      const wanted = Array.from({ length: 50 }, (_, n) => {
        const userId = users[n % users.length];
        return userId === undefined ? opening(newAddress(), `192.0.2.${n}`) : wantedBy(userId);
      });
      expect(await countOf(wanted.map((each) => outcome(each)))).toBe(25);
      expect(await outcome(wantedBy(ada))).toEqual({ status: 503, retryAfter: expect.any(Number) });
      expect(await notices()).toEqual([{ event: { event: 'gas_spent', limit: 250 } }]);
    },
  );

  test(
    'keeps counting the gas of a deleted account, without its wallet and client',
    attack,
    async () => {
      const cause = await reserve({
        ...opening(newAddress(), '192.0.2.1'),
        userId: ada,
        gas: 100n,
      });
      await queryRows(database.ownerUrl, `DELETE FROM users WHERE id = '${ada}'`);
      expect(await storedGas(database.db)).toMatchObject([
        { id: cause, userId: null, wallet: null, client: null, gas: 100 },
      ]);
      await reserve(wantedBy(bob, 100n));
      const carol = (await makeAccount(database.db)).id;
      expect(await outcome(wantedBy(carol, 60n))).toMatchObject({ status: 503 });
      expect(await outcome(wantedBy(carol, 50n))).toBe('admitted');
    },
  );
});

describe('the end of a payment', () => {
  test('settles its gas from the receipt, at most the reserved gas, once', async () => {
    const [one, other] = [await reserve(wantedBy(ada, 40n)), await reserve(wantedBy(ada, 40n))];
    await settle({ cause: one, gas: 15n });
    await settle({ cause: one, gas: 1n });
    await settle({ cause: other, gas: 2n ** 255n, failure: 'reverted' });
    await settle({ cause: 'test:without-gas', gas: 1n });
    const found = await storedGas(database.db);
    expect(
      found.map(({ gas, hasFailed, id, isSettled }) => [id, gas, hasFailed, isSettled]),
    ).toEqual(
      [
        [one, 15, false, true],
        [other, 40, false, true],
      ].toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1)),
    );
    expect(await outcome(wantedBy(ada, 46n))).toMatchObject({ status: 429, current: 55 });
  });

  test.each(['refused', 'unsignable', undefined] as const)(
    'releases gas without a transaction, if it is %s',
    async (failure) => {
      const cause = await reserve(wantedBy(ada, 100n));
      if (failure) await settle({ cause, failure });
      else await releaseGas(database.db.asPlatform(), cause);
      expect(await storedGas(database.db)).toEqual([]);
      expect(await outcome(wantedBy(ada, 100n))).toBe('admitted');
    },
  );

  test('keeps the gas of a payment that may have been made', async () => {
    const cause = await reserve(wantedBy(ada, 100n));
    await settle({ cause, failure: 'unknown' });
    await releaseGas(database.db.asPlatform(), cause);
    expect(await storedGas(database.db)).toMatchObject([{ id: cause, gas: 100, isSettled: true }]);
  });

  test.each(['refused', 'reverted'] as const)(
    'remembers an opening that was %s',
    async (failure) => {
      const cause = await reserve({ ...opening(newAddress(), '192.0.2.1'), userId: ada });
      await settle({ cause, failure, gas: failure === 'reverted' ? 7n : undefined });
      const gas = failure === 'reverted' ? 7 : 0;
      expect(await storedGas(database.db)).toMatchObject([{ id: cause, gas, hasFailed: true }]);
    },
  );
});
