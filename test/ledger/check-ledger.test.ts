import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { MockActivityEnvironment } from '@temporalio/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createMoneyActivities } from '../../activities/money.js';
import type { Database } from '../../src/database/database.js';
import { checkLedger, LEDGER_CHECKS } from '../../src/ledger/check-ledger.js';
import { releaseEndedHolds } from '../../src/ledger/ended-holds.js';
import { balanceOf, hold, post, transfer, type Account } from '../../src/ledger/ledger.js';
import { Notifier } from '../../src/notifications/notifier.js';
import { sendDue } from '../../src/notifications/outbox.js';
import { Retention } from '../../src/retention/retention.js';
import { queryRows } from '../database/catalog.js';
import { keptLog } from '../support/platform-environment.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';
import { runProgram } from '../support/run-program.js';

let database: TestDatabase;
let db: Database;

beforeAll(async () => {
  database = await testDatabase();
  db = database.db;
});
beforeEach(() =>
  owner(
    `TRUNCATE ledger_holds, ledger_transfers, ledger_accounts, pending_notifications, notifications`,
  ),
);
afterAll(() => database?.close());

const owner = (sql: string) => queryRows<Record<string, unknown>>(database.ownerUrl, sql);
const check = () => checkLedger(db, LEDGER_CHECKS);

async function funded(amount: bigint): Promise<Account> {
  const account: Account = `session:${randomUUID()}`;
  const cause = `deposit:${account}`;
  const [debit, currency] = ['external', 'pathusd'] as const;
  await transfer(db.asPlatform(), { debit, credit: account, amount, currency, cause });
  return account;
}

async function held(account: Account, expiresAt: Date): Promise<string> {
  const cause = `voucher:${randomUUID()}`;
  const movement = { debit: account, credit: 'treasury', amount: 3n, currency: 'pathusd' } as const;
  await hold(db.asPlatform(), { ...movement, cause, expiresAt });
  return cause;
}

const inAnHour = () => new Date(Date.now() + 3_600_000);
const anHourAgo = () => new Date(Date.now() - 3_600_000);

describe('a ledger', () => {
  test('that nothing has been done with balances', async () => {
    expect(await check()).toEqual({ accounts: 0, transfers: 0, openHolds: 0, differences: [] });
  });

  test('balances after whatever was moved and held, over all its pages', async () => {
    for (let n = 0; n < 3; n += 1) {
      const account = await funded(10n);
      await held(account, inAnHour());
      await post(db.asPlatform(), await held(account, inAnHour()));
    }
    // More than a page of accounts that have nothing.
    await owner(
      `INSERT INTO ledger_accounts (name, currency)
       SELECT 'user:' || n || ':credits', 'usd' FROM generate_series(1, 450) AS n`,
    );
    expect(await check()).toEqual({
      ...{ accounts: 455, transfers: 6, openHolds: 3 },
      differences: [],
    });
  });

  test('says which account is not what its transfers and holds make of it, and which currency', async () => {
    const [one, other] = [await funded(10n), await funded(10n)];
    await held(one, inAnHour());
    await owner(`UPDATE ledger_accounts SET balance = balance + 1 WHERE name = '${other}'`);
    await owner(`UPDATE ledger_accounts SET held = held - 1 WHERE name = '${one}'`);
    const { differences } = await check();
    expect([...differences].sort()).toEqual(
      [
        `${one}: held is 0.000002 pathusd, its open holds are 0.000003`,
        `${other}: balance is 0.000011 pathusd, its transfers are 0.000010`,
        'pathusd: all accounts are 0.000001',
      ].sort(),
    );
  });

  test('of which nothing is right is told in a hundred sentences', async () => {
    await owner(
      `INSERT INTO ledger_accounts (name, currency, balance)
       SELECT 'user:' || n || ':credits', 'usd', 1 FROM generate_series(1, 300) AS n`,
    );
    expect((await check()).differences).toHaveLength(100);
  });

  test('balances at every moment while others move money', async () => {
    const account = await funded(1_000n);
    const movement = {
      debit: account,
      credit: 'treasury',
      amount: 1n,
      currency: 'pathusd',
    } as const;
    let isOver = false;
    const moving = (async () => {
      for (let n = 0; !isOver && n < 1_000; n += 1) {
        await transfer(db.asPlatform(), { ...movement, cause: `during:${n}` });
      }
    })();
    for (let n = 0; n < 20; n += 1) expect((await check()).differences).toEqual([]);
    isOver = true;
    await moving;
  });
});

describe('the program', () => {
  const program = path.join('dist-dev', 'scripts', 'check-ledger.js');
  const run = () => runProgram([program], { DATABASE_URL: database.url });

  test('ends with that the ledger is balanced, or fails with what differs', async () => {
    const account = await funded(10n);
    await held(account, inAnHour());
    expect(await run()).toBe('ledger: balanced (3 accounts, 1 transfers, 1 open holds)\n');
    await owner(`UPDATE ledger_accounts SET balance = 11 WHERE name = '${account}'`);
    await expect(run()).rejects.toThrow(
      [
        'ended with 1:',
        `${account}: balance is 0.000011 pathusd, its transfers are 0.000010`,
        'pathusd: all accounts are 0.000001',
        'ledger: NOT balanced, 2 differences (3 accounts, 1 transfers, 1 open holds)',
      ].join('\n'),
    );
  });
});

describe('holds past their end', () => {
  test('are released, each once, and no other', async () => {
    const account = await funded(1_000n);
    const open = await held(account, inAnHour());
    const posted = await held(account, anHourAgo());
    await post(db.asPlatform(), posted);
    for (let n = 0; n < 110; n += 1) await held(account, anHourAgo());
    const [one, other] = await Promise.all([releaseEndedHolds(db), releaseEndedHolds(db)]);
    expect(one + other).toBe(110);
    expect(await releaseEndedHolds(db)).toBe(0);
    expect(await balanceOf(db.asPlatform(), account, 'pathusd')).toEqual({
      balance: 997n,
      held: 3n,
    });
    expect(await owner(`SELECT cause FROM ledger_holds WHERE state = 'open'`)).toEqual([
      { cause: open },
    ]);
    expect((await check()).differences).toEqual([]);
  });

  test('go a week after they were settled, and the transfer stays', async () => {
    const account = await funded(10n);
    for (const cause of [await held(account, inAnHour()), await held(account, inAnHour())]) {
      await post(db.asPlatform(), cause);
    }
    const open = await held(account, anHourAgo());
    await owner(
      `UPDATE ledger_holds SET settled_at = now() - interval '8 days'
        WHERE cause = (SELECT min(cause) FROM ledger_holds WHERE state = 'posted')`,
    );
    const days = { agents: 0, operations: 0, transitions: 0, messages: 0, usage: 0, audit: 0 };
    const retention = new Retention(db, days);
    expect([await retention.removeSome('holds'), await retention.removeSome('holds')]).toEqual([
      1, 0,
    ]);
    const left = await owner(`SELECT cause FROM ledger_holds WHERE state = 'open'`);
    expect(left).toEqual([{ cause: open }]);
    expect(await check()).toMatchObject({ transfers: 3, differences: [] });
  });
});

describe('operators', () => {
  const pass = (runId = randomUUID()) =>
    new MockActivityEnvironment({
      workflowExecution: { workflowId: 'check-ledger', runId },
    }).run(createMoneyActivities(db).checkWholeLedger);

  async function told(): Promise<string[]> {
    const messages: string[] = [];
    const send = (text: string) => {
      messages.push(text);
      return Promise.resolve();
    };
    const notifier = new Notifier(db, [{ name: 'discord', send }]);
    while ((await sendDue({ database: db, notifier, log: keptLog().log })) > 0);
    return messages;
  }

  test('are told of a ledger that does not balance, once by each pass', async () => {
    const account = await funded(10n);
    await owner(`UPDATE ledger_accounts SET balance = balance + 1 WHERE name = '${account}'`);
    const runId = randomUUID();
    expect(await pass(runId)).toMatchObject({ accounts: 2, transfers: 1, differences: 2 });
    await pass(runId);
    expect(await told()).toEqual([
      'The ledger is not balanced: it differs in 2 places. See what it is: npm run check:ledger',
    ]);
    expect(await told()).toEqual([]);
  });

  test('are told nothing of one that does', async () => {
    await funded(10n);
    expect(await pass()).toEqual({ accounts: 2, transfers: 1, openHolds: 0, differences: 0 });
    expect(await told()).toEqual([]);
  });
});
