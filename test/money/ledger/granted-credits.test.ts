import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FairLimiter } from '../../../src/lib/fair-limiter.js';
import {
  balanceOf,
  CauseConflictError,
  creditsOf,
  grantedCause,
  grantedOf,
  hold,
  holdCredits,
  HoldNotOpenError,
  InsufficientFundsError,
  post,
  postAll,
  release,
  releaseAll,
  spentOf,
  transfer,
  type Account,
  type CreditsHold,
} from '../../../src/money/ledger/ledger.js';
import { checkLedger, LEDGER_CHECKS } from '../../../src/money/ledger-check/check-ledger.js';
import { Database, type Statements } from '../../../src/platform/database/database.js';
import { creditsByKind, giveCredits, grantCredits } from '../../gateway/support.js';
import { queryRows } from '../../platform/database/catalog.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { Random } from '../../support/random.js';

const attack = { tags: 'attack' };
const HOUR_MS = 60 * 60_000;
const AT_ONCE = 20;

let database: TestDatabase;
let wide: Database;
let platform: Statements;

beforeAll(async () => {
  database = await testDatabase();
  wide = new Database(database.url, { maxConnections: AT_ONCE });
  platform = wide.asPlatform();
});
afterAll(async () => {
  await wide?.close();
  await database?.close();
});

const owner = (sql: string) => queryRows<Record<string, unknown>>(database.ownerUrl, sql);

/** Creates a user with bought and granted credits. */
async function buyer(bought: bigint, granted: bigint): Promise<string> {
  const id = randomUUID();
  if (bought > 0n) await giveCredits(database.db, id, bought);
  if (granted > 0n) await grantCredits(database.db, id, granted);
  return id;
}

const held = (userId: string, amount: bigint, given: Partial<CreditsHold> = {}): CreditsHold => ({
  userId,
  amount,
  cause: `gateway:${randomUUID()}`,
  withGranted: true,
  forMs: HOUR_MS,
  ...given,
});
const bothOf = ({ cause }: Pick<CreditsHold, 'cause'>) => [cause, grantedCause(cause)];
const left = (userId: string) => creditsByKind(database, userId);
const differences = async () => (await checkLedger(database.db, LEDGER_CHECKS)).differences;

describe('a hold of credits', () => {
  test('uses granted credits first, and bought ones for the rest', async () => {
    const id = await buyer(10n, 3n);
    const [first, second] = [held(id, 2n), held(id, 4n)];
    for (const each of [first, second]) expect(await holdCredits(platform, each)).toBe('open');
    expect(await left(id)).toEqual({ bought: 7n, granted: 0n, spent: 0n });
    for (const each of [first, second]) await postAll(platform, bothOf(each));
    expect(await left(id)).toEqual({ bought: 7n, granted: 0n, spent: 6n });
    const granted = await balanceOf(platform, grantedOf(id), 'usd');
    expect(granted).toEqual({ balance: 0n, held: 0n });
    expect(await differences()).toEqual([]);
  });

  test('uses no granted credits that may not pay', attack, async () => {
    const id = await buyer(3n, 10n);
    const only = { withGranted: false };
    await expect(holdCredits(platform, held(id, 4n, only))).rejects.toThrow(InsufficientFundsError);
    await holdCredits(platform, held(id, 3n, only));
    expect(await left(id)).toEqual({ bought: 0n, granted: 10n, spent: 0n });
  });

  test('a hold is refused as a whole if both accounts have too little', async () => {
    const id = await buyer(3n, 3n);
    for (const userId of [id, randomUUID()]) {
      await expect(holdCredits(platform, held(userId, 7n))).rejects.toThrow(InsufficientFundsError);
    }
    expect(await left(id)).toEqual({ bought: 3n, granted: 3n, spent: 0n });
  });

  test('a repeated hold has no effect, and is refused with another amount or for another user', async () => {
    const [id, other] = [await buyer(9n, 3n), await buyer(9n, 3n)];
    const asked = held(id, 5n);
    expect(await holdCredits(platform, asked)).toBe('open');
    expect(await holdCredits(platform, asked)).toBe('open');
    for (const changed of [{ amount: 4n }, { userId: other }]) {
      const repeated = holdCredits(platform, { ...asked, ...changed });
      await expect(repeated).rejects.toThrow(CauseConflictError);
    }
    await postAll(platform, bothOf(asked));
    expect(await holdCredits(platform, asked)).toBe('posted');
    await postAll(platform, bothOf(asked));
    expect([await left(id), await left(other)]).toEqual([
      { bought: 7n, granted: 0n, spent: 5n },
      { bought: 9n, granted: 3n, spent: 0n },
    ]);
  });

  test('a hold is released as a whole, once, and not posted afterwards', async () => {
    const id = await buyer(9n, 3n);
    const asked = held(id, 5n);
    await holdCredits(platform, asked);
    for (let times = 0; times < 2; times += 1) await releaseAll(platform, bothOf(asked));
    expect(await left(id)).toEqual({ bought: 9n, granted: 3n, spent: 0n });
    await expect(postAll(platform, bothOf(asked))).rejects.toThrow(HoldNotOpenError);
    expect(await holdCredits(platform, asked)).toBe('released');
    expect(await left(id)).toEqual({ bought: 9n, granted: 3n, spent: 0n });
  });

  test.each(['bought', 'granted'] as const)(
    'posts no part of a hold once only its %s part has expired',
    async (part) => {
      const id = await buyer(9n, 3n);
      const asked = held(id, 5n);
      await holdCredits(platform, asked);
      await release(platform, part === 'bought' ? asked.cause : grantedCause(asked.cause));
      await expect(postAll(platform, bothOf(asked))).rejects.toThrow(HoldNotOpenError);
      await releaseAll(platform, bothOf(asked));
      expect(await left(id)).toEqual({ bought: 9n, granted: 3n, spent: 0n });
    },
  );

  test('posts and releases no hold that was never made', async () => {
    const causes = bothOf({ cause: `gateway:${randomUUID()}` });
    for (const end of [postAll, releaseAll]) {
      await expect(end(platform, causes)).rejects.toThrow(HoldNotOpenError);
    }
  });

  test('releases no hold that was posted', async () => {
    const id = await buyer(9n, 3n);
    const asked = held(id, 5n);
    await holdCredits(platform, asked);
    await postAll(platform, bothOf(asked));
    await expect(releaseAll(platform, bothOf(asked))).rejects.toThrow(HoldNotOpenError);
    expect(await left(id)).toEqual({ bought: 7n, granted: 0n, spent: 5n });
  });

  test('concurrent holds reserve no more than both accounts have', attack, async () => {
    const id = await buyer(31n, 20n);
    const asked = Array.from({ length: 40 }, () => held(id, 3n));
    const turns = new FairLimiter({ atOnce: AT_ONCE, perOwner: AT_ONCE });
    const outcomes = await Promise.allSettled(
      asked.map((each) => turns.run({ owner: '' }, () => holdCredits(platform, each))),
    );
    const made = asked.filter((_, n) => outcomes[n]?.status === 'fulfilled');
    expect(made).toHaveLength(17);
    expect(await left(id)).toEqual({ bought: 0n, granted: 0n, spent: 0n });
    await Promise.all(
      made.map((each) => turns.run({ owner: '' }, () => postAll(platform, bothOf(each)))),
    );
    expect(await left(id)).toEqual({ bought: 0n, granted: 0n, spent: 51n });
  });

  test('neither deadlocks nor loses an amount under random operations', async () => {
    const random = new Random(Math.floor(Math.random() * 2 ** 32));
    const said = `seed ${random.seed}`;
    const ids = await Promise.all([1, 2, 3].map(() => buyer(40n, 40n)));
    const asked = Array.from({ length: 60 }, () =>
      held(random.pick(ids), BigInt(1 + random.below(9)), { withGranted: !random.isOneIn(4) }),
    );
    const turns = new FairLimiter({ atOnce: AT_ONCE, perOwner: AT_ONCE });
    const act = async () => {
      const each = random.pick(asked);
      if (random.isOneIn(3)) await holdCredits(platform, each);
      else if (random.isOneIn(2)) await postAll(platform, bothOf(each));
      else await releaseAll(platform, bothOf(each));
    };
    const outcomes = await Promise.allSettled(
      Array.from({ length: 300 }, () => turns.run({ owner: '' }, act)),
    );
    const unexpected = outcomes.filter(
      (outcome) =>
        outcome.status === 'rejected' &&
        ![InsufficientFundsError, HoldNotOpenError].some((one) => outcome.reason instanceof one),
    );
    expect(unexpected, said).toEqual([]);
    for (const id of ids) {
      const accounts = [creditsOf(id), grantedOf(id), spentOf(id)];
      const balances = await Promise.all(accounts.map((name) => balanceOf(platform, name, 'usd')));
      const sum = balances.reduce((all, { balance }) => all + balance, 0n);
      expect(sum, said).toBe(80n);
    }
    expect(await differences(), said).toEqual([]);
  });
});

describe('the account of granted credits', attack, () => {
  /** Every kind of account that the ledger has, but the two that granted credits may move to. */
  const others = (id: string): Account[] => [
    creditsOf(id),
    ...[creditsOf, grantedOf, spentOf].map((account) => account(randomUUID())),
    `user:${id}:debt`,
    `user:${id}:granted:spent`,
    `session:${randomUUID()}`,
    'treasury',
    `wallet:0x${'1'.repeat(40)}`,
    'fees',
    'external',
  ];

  test('granted credits move only to what their owner has spent here, or back', async () => {
    const id = await buyer(0n, 100n);
    const movement = (credit: Account, currency: 'usd' | 'pathusd' = 'usd') => ({
      debit: grantedOf(id),
      credit,
      amount: 1n,
      currency,
      cause: `test:${randomUUID()}`,
    });
    for (const tenant of [platform, database.db.asUser(id)]) {
      for (const credit of others(id)) {
        await expect(transfer(tenant, movement(credit))).rejects.toThrow('_granted');
        const until = { ...movement(credit), forMs: HOUR_MS };
        await expect(hold(tenant, until)).rejects.toThrow('_granted');
      }
      for (const credit of [spentOf(id), 'referrals'] as const) {
        await transfer(tenant, movement(credit));
        const kept = { ...movement(credit), forMs: HOUR_MS };
        await hold(tenant, kept);
        await post(tenant, kept.cause);
        const freed = { ...movement(credit), forMs: HOUR_MS };
        await hold(tenant, freed);
        await release(tenant, freed.cause);
      }
    }
    expect(await left(id)).toEqual({ bought: 0n, granted: 92n, spent: 4n });
    // Even the owner of the tables moves them to no other account.
    for (const table of ['transfers', 'holds']) {
      const change = owner(
        `UPDATE ledger_${table} SET credit = 'treasury' WHERE debit = '${grantedOf(id)}'`,
      );
      await expect(change).rejects.toThrow('_granted');
    }
  });

  test('granted credits are held, posted and released only by their owner', async () => {
    const [ada, bob] = [await buyer(0n, 9n), await buyer(0n, 9n)];
    const asked = held(bob, 5n);
    await holdCredits(platform, asked);
    const tenant = database.db.asUser(ada);
    for (const attempt of [
      () => holdCredits(tenant, held(bob, 1n)),
      () => postAll(tenant, bothOf(asked)),
      () => releaseAll(tenant, bothOf(asked)),
    ]) {
      await expect(attempt()).rejects.toThrow('the account is not of the tenant');
    }
    expect(await left(bob)).toEqual({ bought: 0n, granted: 4n, spent: 0n });
  });
});
