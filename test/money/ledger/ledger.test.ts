import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Database, type Statements } from '../../../src/platform/database/database.js';
import { FairLimiter } from '../../../src/lib/fair-limiter.js';
import {
  balanceOf,
  CauseConflictError,
  creditsOf,
  hold,
  HoldNotOpenError,
  InsufficientFundsError,
  post,
  release,
  transfer,
  type Account,
  type LedgerCurrency,
  type TransferRequest,
} from '../../../src/money/ledger/ledger.js';
import { queryRows } from '../../platform/database/catalog.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { Random } from '../../support/random.js';

const HOUR_MS = 60 * 60_000;

/** Concurrent statements; none waits for a connection. */
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

const newUserId = () => randomUUID();
const newSession = (): Account => `session:${randomUUID()}`;

const movement = (given: Partial<TransferRequest>): TransferRequest => ({
  debit: 'external',
  credit: 'treasury',
  amount: 1n,
  currency: 'pathusd',
  cause: `test:${randomUUID()}`,
  ...given,
});

async function funded(amount: bigint, account = newSession()): Promise<Account> {
  await transfer(platform, movement({ credit: account, amount }));
  return account;
}

const held = (given: Partial<TransferRequest>) => ({ ...movement(given), forMs: HOUR_MS });

const stateOf = (account: Account, currency: LedgerCurrency = 'pathusd') =>
  balanceOf(platform, account, currency);

/** Runs the work `count` times with the maximum concurrency. */
async function together(count: number, work: (n: number) => Promise<unknown>) {
  const limiter = new FairLimiter({ atOnce: AT_ONCE, perOwner: AT_ONCE });
  const all = Array.from({ length: count }, (_, n) => limiter.run({ owner: '' }, () => work(n)));
  const refused = (await Promise.allSettled(all)).flatMap((each) =>
    each.status === 'rejected' ? [each.reason as unknown] : [],
  );
  return { done: count - refused.length, refused };
}

describe('transfer', () => {
  test('moves an amount from one account to another', async () => {
    const before = await stateOf('external');
    const account = await funded(100n);
    await transfer(platform, movement({ debit: account, credit: 'fees', amount: 40n }));
    expect(await stateOf(account)).toEqual({ balance: 60n, held: 0n });
    expect((await stateOf('external')).balance).toBe(before.balance - 100n);
  });

  test('transfers once per cause, however often and concurrently it is requested', async () => {
    const account = newSession();
    const once = movement({ credit: account, amount: 7n });
    expect(await together(20, () => transfer(platform, once))).toMatchObject({ done: 20 });
    await transfer(platform, once);
    expect(await stateOf(account)).toEqual({ balance: 7n, held: 0n });
  });

  test('rejects a transfer with a used cause and different content', async () => {
    const account = await funded(10n);
    const first = movement({ debit: account });
    await transfer(platform, first);
    for (const other of [
      { amount: 2n },
      { credit: 'fees' as const },
      { debit: await funded(10n) },
      { currency: 'usd' as const, debit: 'external' as const },
    ]) {
      await expect(transfer(platform, { ...first, ...other })).rejects.toThrow(CauseConflictError);
    }
    expect(await stateOf(account)).toEqual({ balance: 9n, held: 0n });
  });

  test.each(['transfer', 'hold'])(
    'accepts only one of many concurrent movements with the same cause: %s',
    async (kind) => {
      const accounts = await Promise.all(Array.from({ length: 10 }, () => funded(10n)));
      const { cause } = movement({});
      const { done, refused } = await together(10, (n) => {
        const given = { debit: accounts[n] ?? 'fees', cause } as const;
        return kind === 'hold' ? hold(platform, held(given)) : transfer(platform, movement(given));
      });
      expect([done, refused]).toEqual([1, Array(9).fill(expect.any(CauseConflictError))]);
    },
  );

  test('accepts either a transfer or a posted hold of the same cause when both are concurrent', async () => {
    for (let n = 0; n < 20; n += 1) {
      const account = await funded(10n);
      const voucher = held({ debit: account, amount: 4n });
      await hold(platform, voucher);
      const { refused } = await together(2, (which) =>
        which === 0
          ? post(platform, voucher.cause)
          : transfer(platform, { ...voucher, amount: 5n }),
      );
      expect(refused).toEqual([expect.any(CauseConflictError)]);
    }
  });

  test('accepts a repeated transfer although the account is empty', async () => {
    const account = await funded(5n);
    const all = movement({ debit: account, amount: 5n });
    await transfer(platform, all);
    await transfer(platform, all);
    expect(await stateOf(account)).toEqual({ balance: 0n, held: 0n });
  });

  test('rejects a transfer above the balance without breaking its transaction', async () => {
    const account = await funded(5n);
    await wide.asPlatform().transaction(async (db) => {
      const more = transfer(db, movement({ debit: account, amount: 6n }));
      await expect(more).rejects.toThrow(InsufficientFundsError);
      await transfer(db, movement({ debit: account, amount: 5n }));
    });
    expect(await stateOf(account)).toEqual({ balance: 0n, held: 0n });
    const none = transfer(platform, movement({ debit: newSession() }));
    await expect(none).rejects.toThrow(InsufficientFundsError);
  });

  test('rolls a transfer back with its transaction', async () => {
    const account = await funded(5n);
    const work = wide.asPlatform().transaction(async (db) => {
      await transfer(db, movement({ debit: account, amount: 5n }));
      throw new RangeError('on purpose');
    });
    await expect(work).rejects.toThrow(RangeError);
    expect(await stateOf(account)).toEqual({ balance: 5n, held: 0n });
  });

  test('rejects amounts of zero or less and transfers within one account', async () => {
    const account = await funded(5n);
    for (const wrong of [{ amount: 0n }, { amount: -1n }, { debit: account, credit: account }]) {
      await expect(transfer(platform, movement(wrong))).rejects.toThrow('constraint');
    }
  });

  test('keeps accounts of different currencies separate', async () => {
    const user = creditsOf(newUserId());
    await transfer(platform, movement({ credit: user, amount: 5n, currency: 'usdc:8453' }));
    for (const currency of ['usd', 'pathusd', 'usdc:84532'] as const) {
      expect(await stateOf(user, currency)).toEqual({ balance: 0n, held: 0n });
      const other = transfer(platform, movement({ debit: user, currency }));
      await expect(other).rejects.toThrow(InsufficientFundsError);
    }
    const unknown = movement({ currency: 'usdc:0' });
    await expect(transfer(platform, unknown)).rejects.toThrow('ledger_accounts_currency_check');
  });
});

describe('hold', () => {
  test('keeps a held amount back and posts it once', async () => {
    const account = await funded(10n);
    const voucher = held({ debit: account, amount: 4n });
    expect(await hold(platform, voucher)).toBe('open');
    expect(await hold(platform, { ...voucher, forMs: 2 * HOUR_MS })).toBe('open');
    expect(await stateOf(account)).toEqual({ balance: 10n, held: 4n });
    await post(platform, voucher.cause);
    await post(platform, voucher.cause);
    expect(await stateOf(account)).toEqual({ balance: 6n, held: 0n });
    expect(await hold(platform, voucher)).toBe('posted');
    await expect(release(platform, voucher.cause)).rejects.toThrow(HoldNotOpenError);
    expect(await stateOf(account)).toEqual({ balance: 6n, held: 0n });
  });

  test('frees a released amount and never posts it', async () => {
    const account = await funded(10n);
    const voucher = held({ debit: account, amount: 4n });
    await hold(platform, voucher);
    await release(platform, voucher.cause);
    await release(platform, voucher.cause);
    expect(await stateOf(account)).toEqual({ balance: 10n, held: 0n });
    expect(await hold(platform, voucher)).toBe('released');
    const late = post(platform, voucher.cause);
    await expect(late).rejects.toMatchObject({ name: 'HoldNotOpenError', state: 'released' });
    expect(await stateOf(account)).toEqual({ balance: 10n, held: 0n });
  });

  test('posts a hold in part and frees the rest', async () => {
    const account = await funded(10n);
    const voucher = held({ debit: account, amount: 8n });
    await hold(platform, voucher);
    for (const amount of [0n, 9n]) {
      await expect(post(platform, voucher.cause, amount)).rejects.toThrow(
        'only what is held is posted',
      );
    }
    await post(platform, voucher.cause, 3n);
    await post(platform, voucher.cause, 3n);
    await expect(post(platform, voucher.cause, 4n)).rejects.toThrow(CauseConflictError);
    expect(await stateOf(account)).toEqual({ balance: 7n, held: 0n });
  });

  test('does not let a held amount be held again or spent', async () => {
    const account = await funded(10n);
    await hold(platform, held({ debit: account, amount: 6n }));
    const second = hold(platform, held({ debit: account, amount: 5n }));
    await expect(second).rejects.toThrow(InsufficientFundsError);
    const spent = transfer(platform, movement({ debit: account, amount: 5n }));
    await expect(spent).rejects.toThrow(InsufficientFundsError);
  });

  test('neither posts nor releases an unknown hold', async () => {
    const unknown = { name: 'HoldNotOpenError', state: 'unknown' };
    await expect(post(platform, 'nothing')).rejects.toMatchObject(unknown);
    await expect(release(platform, 'nothing')).rejects.toMatchObject(unknown);
  });

  test('rejects a hold with a used cause and different content', async () => {
    const account = await funded(10n);
    const first = held({ debit: account });
    await hold(platform, first);
    await expect(hold(platform, { ...first, amount: 2n })).rejects.toThrow(CauseConflictError);
    expect(await stateOf(account)).toEqual({ balance: 10n, held: 1n });
  });

  test('either posts or releases a hold when both are concurrent', async () => {
    for (let n = 0; n < 10; n += 1) {
      const account = await funded(10n);
      const voucher = held({ debit: account, amount: 4n });
      await hold(platform, voucher);
      const { refused } = await together(2, (n) =>
        (n === 0 ? post : release)(platform, voucher.cause),
      );
      expect(refused).toEqual([expect.any(HoldNotOpenError)]);
      const { balance, held: left } = await stateOf(account);
      expect([[6n, 10n].includes(balance), left]).toEqual([true, 0n]);
    }
  });
});

describe('account', () => {
  test.each(['transfers', 'holds'])(
    'never overdraws an account by 200 concurrent %s',
    { tags: 'attack' },
    async (kind) => {
      const account = await funded(50n);
      const before = await stateOf('treasury');
      const one = () =>
        kind === 'transfers'
          ? transfer(platform, movement({ debit: account }))
          : hold(platform, held({ debit: account }));
      const { done, refused } = await together(200, one);
      expect(done).toBe(50);
      expect(refused.every((error) => error instanceof InsufficientFundsError)).toBe(true);
      const spent = kind === 'transfers' ? 50n : 0n;
      expect(await stateOf(account)).toEqual({ balance: 50n - spent, held: 50n - spent });
      expect((await stateOf('treasury')).balance).toBe(before.balance + spent);
    },
  );

  test('moves money both ways concurrently without a deadlock', async () => {
    const [a, b] = [await funded(1_000n), await funded(1_000n)];
    const { done } = await together(100, (n) =>
      transfer(platform, movement(n % 2 ? { debit: a, credit: b } : { debit: b, credit: a })),
    );
    expect(done).toBe(100);
    expect([await stateOf(a), await stateOf(b)]).toEqual([
      { balance: 1_000n, held: 0n },
      { balance: 1_000n, held: 0n },
    ]);
  });

  test('prevents negative balances of users and sessions by a table constraint', async () => {
    const accounts = [await funded(1n), await funded(1n, creditsOf(newUserId()))];
    for (const account of accounts) {
      for (const change of ['balance = -1', 'held = 2']) {
        const below = owner(`UPDATE ledger_accounts SET ${change} WHERE name = '${account}'`);
        await expect(below).rejects.toThrow('ledger_accounts_not_overdrawn');
      }
    }
  });

  test('keeps every balance equal to the sum of its transfers under random operations', async () => {
    const random = new Random(Math.floor(Math.random() * 2 ** 32));
    const said = `seed ${random.seed}`;
    const accounts: Account[] = ['external', 'treasury', ...[1, 2, 3].map(() => newSession())];
    const causes: string[] = [];
    const act = async (): Promise<void> => {
      const cause = causes.length > 0 && random.isOneIn(4) ? random.pick(causes) : undefined;
      const [debit, credit] = random.shuffled(accounts);
      const amount = BigInt(1 + random.below(9));
      const move = movement({ debit, credit, amount, ...(cause && { cause }) });
      switch (random.below(5)) {
        case 0:
        case 1:
          return transfer(platform, move);
        case 2:
          causes.push(move.cause);
          await hold(platform, { ...move, forMs: HOUR_MS });
          return;
        case 3:
          return post(
            platform,
            random.pick([move.cause, ...causes]),
            random.pick([amount, undefined]),
          );
        default:
          return release(platform, random.pick([move.cause, ...causes]));
      }
    };
    // Only the ledger itself may refuse: no overdraft and no deadlock.
    const { done, refused } = await together(200, act);
    expect(done, said).toBeGreaterThan(0);
    const isExpected = (error: unknown) =>
      [InsufficientFundsError, CauseConflictError, HoldNotOpenError].some(
        (one) => error instanceof one,
      ) ||
      (error instanceof Error && error.message.includes('posted_within'));
    expect(
      refused.filter((error) => !isExpected(error)),
      said,
    ).toEqual([]);
    const wrong = await owner(
      `SELECT a.* FROM ledger_accounts a
        WHERE balance <> (SELECT coalesce(sum(CASE WHEN t.credit = a.name THEN amount ELSE -amount END), 0)
                            FROM ledger_transfers t
                           WHERE a.name IN (t.debit, t.credit) AND t.currency = a.currency)
           OR held <> (SELECT coalesce(sum(amount), 0) FROM ledger_holds h
                        WHERE h.debit = a.name AND h.currency = a.currency AND h.state = 'open')`,
    );
    expect(wrong, said).toEqual([]);
    const sums = await owner('SELECT currency, sum(balance) FROM ledger_accounts GROUP BY 1');
    expect(
      sums.every(({ sum }) => sum === '0'),
      said,
    ).toBe(true);
  });
});

describe('permissions of a user', { tags: 'attack' }, () => {
  test('allows a user to move only their own money', async () => {
    const [ada, bob] = [newUserId(), newUserId()];
    const both = [creditsOf(ada), creditsOf(bob)] as const;
    for (const account of both) await funded(10n, account);
    const tenant = database.db.asUser(ada);
    const voucher = held({ debit: both[0], amount: 2n });
    expect(await hold(tenant, voucher)).toBe('open');
    await post(tenant, voucher.cause);
    const theirs = held({ debit: both[1], amount: 2n });
    await hold(platform, theirs);
    const refused = [
      () => transfer(tenant, movement({ debit: both[1], credit: both[0] })),
      () => transfer(tenant, movement({ debit: 'external', credit: both[0] })),
      () => hold(tenant, held({ debit: both[1], credit: both[0] })),
      () => post(tenant, theirs.cause),
      () => release(tenant, theirs.cause),
      () => transfer(database.db.asUser(''), movement({ debit: both[1] })),
      () => transfer(database.db.asUser(`${bob}:credits`), movement({ debit: both[1] })),
      () => transfer(database.db.asUser('%'), movement({ debit: both[1] })),
    ];
    for (const attempt of refused) {
      await expect(attempt()).rejects.toThrow('the account is not of the tenant');
    }
    expect(await stateOf(both[1])).toEqual({ balance: 10n, held: 2n });
  });

  test('hides accounts, transfers and holds of other users', async () => {
    const [ada, bob] = [newUserId(), newUserId()];
    const account = await funded(10n, creditsOf(bob));
    await hold(platform, held({ debit: account, amount: 2n }));
    const none = { balance: 0n, held: 0n };
    expect(await balanceOf(database.db.asUser(ada), account, 'pathusd')).toEqual(none);
    for (const table of ['ledger_accounts', 'ledger_transfers', 'ledger_holds']) {
      const rows = (user: string) => database.db.asUser(user).query(`SELECT * FROM ${table}`);
      expect([(await rows(ada)).length, (await rows(bob)).length]).toEqual([0, 1]);
    }
  });

  test("allows users and the platform to change money only through the ledger's functions", async () => {
    const account = await funded(10n, creditsOf(newUserId()));
    for (const statement of [
      'UPDATE ledger_transfers SET amount = 1',
      'DELETE FROM ledger_transfers',
      `INSERT INTO ledger_transfers (cause, debit, credit, currency, amount)
       VALUES ('x', 'external', '${account}', 'pathusd', 1)`,
      'UPDATE ledger_accounts SET balance = 1',
      'DELETE FROM ledger_accounts',
      "UPDATE ledger_holds SET state = 'released'",
      'DELETE FROM ledger_holds',
      `SELECT book_transfer('x', 'external', '${account}', 'pathusd', 1, 0)`,
    ]) {
      await expect(platform.query(statement)).rejects.toThrow('permission denied');
    }
  });
});
