import { randomBytes, randomUUID } from 'node:crypto';
import path from 'node:path';
import { MockActivityEnvironment } from '@temporalio/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createMoneyActivities } from '../../../activities/money.js';
import { ChainNode } from '../../../src/money/chain/chain-node.js';
import type { Database } from '../../../src/platform/database/database.js';
import { checkLedger, LEDGER_CHECKS } from '../../../src/money/ledger-check/check-ledger.js';
import { releaseExpiredHolds } from '../../../src/money/ledger/release-expired-holds.js';
import {
  balanceOf,
  grantedCause,
  grantedOf,
  hold,
  holdCredits,
  post,
  postAll,
  transfer,
  type Account,
} from '../../../src/money/ledger/ledger.js';
import { Notifier } from '../../../src/notifications/notifier.js';
import { sendDue } from '../../../src/notifications/outbox.js';
import { Retention } from '../../../src/retention/retention.js';
import { SecretBox } from '../../../src/platform/secrets/secret-box.js';
import { queryRows } from '../../platform/database/catalog.js';
import { insertSql, ROWS } from '../../platform/database/rows.js';
import { giveCredits, grantCredits, openSession } from '../../gateway/support.js';
import { makePayer } from '../splits/support.js';
import { keptLog } from '../../support/platform-environment.js';
import { newUser, testDatabase, type TestDatabase } from '../../support/postgres.js';
import { ringOf } from '../../../src/platform/secrets/key-ring.js';
import { runProgram } from '../../support/run-program.js';

let database: TestDatabase;
let db: Database;

beforeAll(async () => {
  database = await testDatabase();
  db = database.db;
});
beforeEach(() =>
  owner(
    `TRUNCATE payment_sessions CASCADE;
     TRUNCATE ledger_holds, ledger_transfers, ledger_accounts, pending_notifications, notifications`,
  ),
);
afterAll(() => database?.close());

const owner = (sql: string) => queryRows<Record<string, unknown>>(database.ownerUrl, sql);
/** Chain access without a configured node. */
const nowhere = {
  node: new ChainNode({ chainId: 4217, url: undefined }),
  treasury: undefined,
} as const;
const check = () => checkLedger(db, LEDGER_CHECKS);

async function funded(amount: bigint): Promise<Account> {
  const account: Account = `session:${randomUUID()}`;
  const cause = `deposit:${account}`;
  const [debit, currency] = ['external', 'pathusd'] as const;
  await transfer(db.asPlatform(), { debit, credit: account, amount, currency, cause });
  return account;
}

async function held(account: Account, forMs: number): Promise<string> {
  const cause = `voucher:${randomUUID()}`;
  const movement = { debit: account, credit: 'treasury', amount: 3n, currency: 'pathusd' } as const;
  await hold(db.asPlatform(), { ...movement, cause, forMs });
  return cause;
}

const AN_HOUR_MS = 3_600_000;

describe('ledger check', () => {
  test('finds no difference in an empty ledger', async () => {
    expect(await check()).toEqual({ accounts: 0, transfers: 0, openHolds: 0, differences: [] });
  });

  test('finds no difference after transfers and holds over several pages', async () => {
    for (let n = 0; n < 3; n += 1) {
      const account = await funded(10n);
      await held(account, AN_HOUR_MS);
      await post(db.asPlatform(), await held(account, AN_HOUR_MS));
    }
    // Fills more than a page with empty accounts, so that the page ends between two of the same name.
    await owner(
      `INSERT INTO ledger_accounts (name, currency)
       SELECT 'user:' || n || ':credits', c
         FROM generate_series(1, 225) AS n, unnest(ARRAY['usd', 'pathusd']) AS c`,
    );
    expect(await check()).toEqual({
      accounts: 455,
      transfers: 6,
      openHolds: 3,
      differences: [],
    });
  });

  test('names the accounts and currencies that differ from their transfers and holds', async () => {
    const [one, other] = [await funded(10n), await funded(10n)];
    await held(one, AN_HOUR_MS);
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
    await owner(`UPDATE ledger_accounts SET balance = balance - 2 WHERE name = '${other}'`);
    expect((await check()).differences).toContain('pathusd: all accounts are -0.000001');
  });

  test('lists at most a hundred differences', async () => {
    await owner(
      `INSERT INTO ledger_accounts (name, currency, balance)
       SELECT 'user:' || n || ':credits', 'usd', 1 FROM generate_series(1, 300) AS n`,
    );
    expect((await check()).differences).toHaveLength(100);
  });

  test('finds no difference at any moment during concurrent transfers', async () => {
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

describe('credits in the ledger', () => {
  const grantHold = (cause: string, userId: string) =>
    hold(db.asPlatform(), {
      cause,
      debit: grantedOf(userId),
      credit: 'referrals',
      amount: 1n,
      currency: 'usd',
      forMs: 'never',
    });

  test('finds runs that were paid by only one of two kinds of credits', async () => {
    const userId = randomUUID();
    await giveCredits(db, userId, 5n);
    await grantCredits(db, userId, 5n);
    const run = { userId, amount: 7n, withGranted: true, forMs: AN_HOUR_MS };
    const [one, two] = ['gateway:1', 'gateway:2'];
    await holdCredits(db.asPlatform(), { ...run, cause: one });
    await postAll(db.asPlatform(), [one, grantedCause(one)]);
    expect((await check()).differences).toEqual([]);
    await giveCredits(db, userId, 5n);
    await grantCredits(db, userId, 5n);
    await holdCredits(db.asPlatform(), { ...run, cause: two });
    await post(db.asPlatform(), two);
    expect((await check()).differences).toEqual([
      'gateway:2:granted is posted without the hold of bought credits, or the reverse',
    ]);
  });

  test('finds credits of a referral that are held for a verified or a deleted account', async () => {
    const [unverified, verified, gone] = [
      await newUser(database),
      await newUser(database),
      await newUser(database),
    ];
    await grantCredits(db, unverified, 9n);
    await owner(`UPDATE users SET email_verified_at = now() WHERE id = '${verified}'`);
    await owner(`DELETE FROM users WHERE id = '${gone}'`);
    for (const id of [unverified, verified, gone])
      await grantHold(`unverified:${id}:new`, unverified);
    expect([...(await check()).differences].sort()).toEqual(
      [
        `unverified:${verified}:new is held, and the address is verified`,
        `unverified:${gone}:new is held for an account that does not exist`,
      ].sort(),
    );
  });
});

describe('payments in the ledger', () => {
  const hash = (digit: string) => `0x${digit.repeat(64)}`;
  const wallet = `0x${'a'.repeat(40)}`;
  const book = (cause: string, debit: Account, credit: Account, amount = 5n) =>
    transfer(db.asPlatform(), {
      cause,
      debit,
      credit,
      amount,
      currency: credit === 'treasury' ? 'pathusd' : 'usdc:4217',
    });
  const found = async () => (await check()).differences;

  afterEach(() => owner('TRUNCATE payments, payment_claims, clones, royalty_payouts CASCADE'));
  afterEach(() => owner('DELETE FROM royalty_splits'));

  /**
   * Creates a split with one payout, paid and booked.
   *
   * @returns the id of the split.
   */
  async function paidSplit(): Promise<string> {
    const payer = await makePayer(db, new SecretBox(ringOf(randomBytes(32))));
    const [row] = await owner(
      `INSERT INTO royalty_splits (user_id, agent_id, request_key, from_address, chain_id,
                                   token_address, name, total_amount, status)
       VALUES ('${payer.id}', '${payer.agentId}', '${randomUUID()}', '${wallet}', 4217, '${wallet}',
               'a song', 5, 'completed') RETURNING id::text`,
    );
    const id = String(row?.id);
    await owner(
      `INSERT INTO payments (id, cause, chain_id, signer, calls, state, hash, block_number, nonce,
                             settled_at)
       VALUES ('${randomUUID()}', 'split:${id}:1:0', 4217, '${wallet}', '[]', 'confirmed',
               '${hash('1')}', 1, 1, now());
       INSERT INTO royalty_payouts (split_id, position, user_id, address, share, amount, status,
                                    payment, transaction)
       VALUES (${id}, 0, '${payer.id}', '${wallet}', 1000000, 5, 'confirmed', 'split:${id}:1:0',
               '${hash('1')}')`,
    );
    await book(`payout:${id}:0`, `wallet:${wallet}`, 'external');
    return id;
  }

  test('requires the payment and the transfer of a paid split', async () => {
    const id = await paidSplit();
    expect(await found()).toEqual([]);
    const name = (from: string, to: string) =>
      owner(`UPDATE ledger_transfers SET cause = '${to}' WHERE cause = '${from}'`);
    await name(`payout:${id}:0`, 'another');
    expect(await found()).toEqual([`payout:${id}:0 is paid, and not in the ledger`]);
    await name('another', `payout:${id}:0`);
    await owner(`UPDATE royalty_payouts SET amount = 6`);
    expect(await found()).toEqual([`payout:${id}:0 is another transfer in the ledger`]);
    await owner(`UPDATE royalty_payouts SET amount = 5, transaction = '${hash('2')}'`);
    expect(await found()).toEqual([`payout:${id}:0 has another transaction than its payment`]);
    await owner(`UPDATE royalty_payouts SET payment = 'split:none'`);
    expect(await found()).toEqual([`payout:${id}:0 has no confirmed payment`]);
    await owner(`UPDATE royalty_payouts SET status = 'failed'`);
    expect(await found()).toEqual([`payout:${id}:0 is in the ledger, and was not paid`]);
    // Simulates a removed account: only the payment proves the payout.
    await owner('DELETE FROM royalty_splits');
    expect(await found()).toEqual([]);
    await owner('DELETE FROM payments');
    expect(await found()).toEqual([`payout:${id}:0 is in the ledger, and was not paid`]);
  });

  test('names the first twenty unpaid bookings and counts the rest', async () => {
    for (let n = 0; n < 23; n += 1) await book(`payout:0:${n}`, `wallet:${wallet}`, 'external');
    const differences = await found();
    expect([differences.length, differences.at(-1)]).toEqual([21, 'and 3 more of these']);
  });

  test('requires the transfer and the claimed payment of a clone', async () => {
    const { agentId, id: userId } = await makePayer(db, new SecretBox(ringOf(randomBytes(32))));
    await owner(
      `INSERT INTO payment_claims (chain_id, hash, clone_id, user_id)
       VALUES (4217, '${hash('3')}', '${agentId}', '${userId}');
       INSERT INTO clones (id, user_id, parent_agent_id, specialization, chain_id, hash, payer,
                           amount, block, paid_at, requested_by, request_id)
       VALUES ('${agentId}', '${userId}', 'parent', 'general', 4217, '${hash('3')}', '${wallet}',
               5, 1, now(), '${userId}', 'request')`,
    );
    expect(await found()).toEqual([`clone:${agentId} is paid, and not in the ledger`]);
    await book(`clone:${agentId}`, 'external', 'treasury');
    expect(await found()).toEqual([]);
    await owner('UPDATE clones SET amount = 6');
    expect(await found()).toEqual([`clone:${agentId} is another transfer in the ledger`]);
    await owner('DELETE FROM clones; DELETE FROM payment_claims');
    expect(await found()).toEqual([
      `clone:${agentId} is in the ledger, and no payment was claimed for it`,
    ]);
  });

  test("accounts for a session's deposit as left, spent, settled or refunded", async () => {
    const session = await openSession(db, 10n);
    expect(await found()).toEqual([]);
    const spent = `session:${session.id}:spent` as const;
    const set = (what: string) =>
      owner(`UPDATE payment_sessions SET ${what} WHERE id = '${session.id}'`);
    await set('delivered = 4');
    expect(await found()).toHaveLength(2);
    const move = (debit: Account, credit: Account, amount: bigint) =>
      transfer(db.asPlatform(), {
        debit,
        credit,
        amount,
        currency: 'pathusd',
        cause: `test:${randomUUID()}`,
      });
    await move(`session:${session.id}`, spent, 4n);
    expect(await found()).toEqual([]);
    await move(spent, 'treasury', 3n);
    expect(await found()).toEqual([
      `session:${session.id} has settled 0.000000 pathusd, the treasury has received 0.000003`,
    ]);
    await set('settled = 3');
    await move(`session:${session.id}`, 'external', 6n);
    expect(await found()).toEqual([]);
    // An unsettled amount is refunded too.
    await move(spent, 'external', 1n);
    expect(await found()).toEqual([]);
    // A session that is still opening has no ledger entries.
    await owner(
      `INSERT INTO payment_sessions SELECT (jsonb_populate_record(s, jsonb_build_object(
         'id', s.id || '-opening', 'token_hash', s.id, 'nonce', '${hash('5')}', 'state', 'opening',
         'address', '${wallet}', 'opened_at', NULL, 'hold_expires_at', NULL, 'delivered', 0,
         'settled', 0))).* FROM payment_sessions s WHERE id = '${session.id}'`,
    );
    expect(await found()).toEqual([]);
    await owner(`DELETE FROM payment_sessions WHERE id = '${session.id}-opening'`);
    await set('deposit = 11');
    expect(await found()).toEqual([
      `session:${session.id} is 0.000000 pathusd, the remainder of its deposit is 0.000001`,
    ]);
  });
});

test('accepts booked operator fees only for known transactions', async () => {
  const hash = `0x${randomBytes(32).toString('hex')}`;
  const found = async () => (await check()).differences;
  const fee = { credit: 'external', currency: 'pathusd', cause: `fee:${hash}` } as const;
  await transfer(db.asPlatform(), { ...fee, debit: 'fees', amount: 7n });
  const none = `fee:${hash} is in the ledger, and no transaction has it`;
  expect(await found()).toEqual([none]);
  await owner(
    `INSERT INTO transactions (hash, chain_id, signer, nonce, purpose, raw, max_fee, priority_fee,
                               gas, final_at, fee, fee_payer, fee_block)
     VALUES ('${hash}', 4217, 'signer', 0, 'fill', '0x', 1, 1, 1, now(), 7, 'payer', 'block')`,
  );
  try {
    expect(await found()).toEqual([]);
    await owner(`UPDATE transactions SET fee = 8 WHERE hash = '${hash}'`);
    expect(await found()).toEqual([`fee:${hash} is another transfer in the ledger`]);
  } finally {
    await owner(`DELETE FROM transactions WHERE hash = '${hash}'`);
  }
});

describe('check-ledger program', () => {
  const program = path.join('dist-dev', 'scripts', 'check-ledger.js');
  const run = () => runProgram([program], { DATABASE_URL: database.url });

  test('prints that the ledger is balanced, or fails with the differences', async () => {
    const account = await funded(10n);
    await held(account, AN_HOUR_MS);
    expect(await run()).toBe('ledger: balanced (3 accounts, 1 transfer, 1 open hold)\n');
    await owner(`UPDATE ledger_accounts SET balance = 11 WHERE name = '${account}'`);
    await expect(run()).rejects.toThrow(
      [
        'exited with 1:',
        `${account}: balance is 0.000011 pathusd, its transfers are 0.000010`,
        'pathusd: all accounts are 0.000001',
        'ledger: NOT balanced, 2 differences (3 accounts, 1 transfer, 1 open hold)',
      ].join('\n'),
    );
  });
});

test("fails when a booking's chain is unavailable", async () => {
  const [debit, credit, currency] = ['external', 'treasury', 'pathusd'] as const;
  await transfer(db.asPlatform(), { debit, credit, amount: 1n, currency, cause: 'earned:2' });
  const program = path.join('dist-dev', 'scripts', 'check-ledger.js');
  await expect(runProgram([program], { DATABASE_URL: database.url })).rejects.toThrow(
    'exited with 1:\nledger: the chain cannot be queried',
  );
});

describe('expired holds', () => {
  test('releases each expired hold once, and no others', async () => {
    const account = await funded(1_000n);
    const open = await held(account, AN_HOUR_MS);
    const posted = await held(account, -AN_HOUR_MS);
    await post(db.asPlatform(), posted);
    for (let n = 0; n < 110; n += 1) await held(account, -AN_HOUR_MS);
    const [one, other] = await Promise.all([releaseExpiredHolds(db), releaseExpiredHolds(db)]);
    expect(one + other).toBe(110);
    expect(await releaseExpiredHolds(db)).toBe(0);
    expect(await balanceOf(db.asPlatform(), account, 'pathusd')).toEqual({
      balance: 997n,
      held: 3n,
    });
    expect(await owner(`SELECT cause FROM ledger_holds WHERE state = 'open'`)).toEqual([
      { cause: open },
    ]);
    expect((await check()).differences).toEqual([]);
  });

  test('removes a hold a week after it was settled, but keeps its transfer', async () => {
    const account = await funded(10n);
    const [late, early] = [await held(account, AN_HOUR_MS), await held(account, AN_HOUR_MS)];
    for (const cause of [late, early]) await post(db.asPlatform(), cause);
    const open = await held(account, -AN_HOUR_MS);
    await owner(
      `UPDATE ledger_holds SET settled_at = now() - interval '7 days 1 minute' WHERE cause = '${early}';
       UPDATE ledger_holds SET settled_at = now() - interval '6 days 23 hours' WHERE cause = '${late}'`,
    );
    const days = {
      ...{ agents: 0, operations: 0, transitions: 0, messages: 0, usage: 0, audit: 0 },
      ...{ events: 0, payments: 0, bus: 0 },
    };
    const retention = new Retention(db, days);
    expect([await retention.removeSome('holds'), await retention.removeSome('holds')]).toEqual([
      1, 0,
    ]);
    const left = await owner('SELECT cause FROM ledger_holds ORDER BY cause');
    expect(left).toEqual([late, open].sort().map((cause) => ({ cause })));
    expect(await check()).toMatchObject({ transfers: 3, differences: [] });
  });
});

describe('notifications of operators', () => {
  const KNOWN = { own: 4_217, royalties: 84_532 };
  const pass = (runId = randomUUID()) =>
    new MockActivityEnvironment({
      workflowExecution: { workflowId: 'check-ledger', runId },
    }).run(
      createMoneyActivities({
        database: db,
        chain: nowhere,
        knownChains: KNOWN,
        sessionSettings: { holdMs: AN_HOUR_MS, maxAgeMs: AN_HOUR_MS },
      }).checkWholeLedger,
    );

  async function reported(): Promise<string[]> {
    const messages: string[] = [];
    const send = (text: string) => {
      messages.push(text);
      return Promise.resolve();
    };
    const notifier = new Notifier(db, [{ name: 'discord', send }]);
    while ((await sendDue({ database: db, notifier, log: keptLog().log })) > 0);
    return messages;
  }

  test('notifies operators of an unbalanced ledger once per pass', async () => {
    const account = await funded(10n);
    await owner(`UPDATE ledger_accounts SET balance = balance + 1 WHERE name = '${account}'`);
    const runId = randomUUID();
    expect(await pass(runId)).toMatchObject({ accounts: 2, transfers: 1, differences: 2 });
    await pass(runId);
    expect(await reported()).toEqual([
      'The ledger is not balanced: it differs in 2 places. For the differences, run: npm run check:ledger',
    ]);
    expect(await reported()).toEqual([]);
  });

  test('notifies operators of rows that wait for chains no longer configured', async () => {
    const userId = await newUser(database);
    for (const [n, chainId] of [42_431, KNOWN.own, KNOWN.royalties].entries()) {
      const given = {
        payments: {},
        payment_sessions: {},
        royalty_splits: { status: 'queued' },
        agents: {},
        clones: { state: 'waiting' },
      };
      for (const [table, state] of Object.entries(given)) {
        const row = ROWS[table]?.(userId, n + 1) ?? {};
        await owner(
          insertSql(table, { ...row, ...(table !== 'agents' && { chain_id: chainId }), ...state }),
        );
      }
    }
    await pass();
    expect(await reported()).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^1 row waits for chain 4217,/),
        expect.stringMatching(/^4 rows wait for chain 42431,/),
        expect.stringMatching(/^2 rows wait for chain 84532,/),
      ]),
    );
    await owner(
      `DELETE FROM payments; DELETE FROM payment_sessions; DELETE FROM royalty_splits;
       DELETE FROM agents`,
    );
    await pass();
    expect(await reported()).toEqual([]);
  });

  test('sends no notification when the chain is unavailable', async () => {
    const [debit, credit, currency] = ['external', 'treasury', 'pathusd'] as const;
    await transfer(db.asPlatform(), { debit, credit, amount: 1n, currency, cause: 'earned:1' });
    expect(await pass()).toMatchObject({ differences: 0, isChainAway: true });
    expect(await reported()).toEqual([]);
  });

  test('sends no notification for a balanced ledger', async () => {
    await funded(10n);
    expect(await pass()).toEqual({
      accounts: 2,
      transfers: 1,
      openHolds: 0,
      differences: 0,
      isChainAway: false,
    });
    expect(await reported()).toEqual([]);
  });
});
