import { Sequelize } from 'sequelize';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { MIGRATIONS } from '../../../src/platform/database/migrations/index.js';
import type { Migration } from '../../../src/platform/database/migrations/migration.js';
import { roleOf } from '../../../src/platform/database/roles.js';
import { balanceOf, creditsOf, transfer } from '../../../src/money/ledger/ledger.js';
import { queryRows } from '../../platform/database/catalog.js';
import { newUser, testDatabase, type TestDatabase } from '../../support/postgres.js';

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database?.close());

const owner = (sql: string) => queryRows(database.ownerUrl, sql);

/** Takes steps of the migration that makes the ledger, as its owner, in one transaction. */
async function migrateLedger(...steps: readonly (keyof Migration)[]): Promise<void> {
  const found = MIGRATIONS.find(({ name }) => name === '032-ledger');
  const sequelize = new Sequelize(database.ownerUrl, { logging: false });
  const queryInterface = sequelize.getQueryInterface();
  const servingRole = roleOf(database.url);
  try {
    for (const step of steps) {
      await sequelize.transaction(async (transaction) =>
        found?.migration[step]({ queryInterface, transaction, servingRole }),
      );
    }
  } finally {
    await sequelize.close();
  }
}

const entered = (userId: string, reference: string) =>
  `INSERT INTO credit_entries (user_id, amount, reason, reference, created_at)
   VALUES ('${userId}', 100, 'referral', '${reference}', '2026-01-01')`;

const creditsIn = async (userId: string) =>
  (await balanceOf(database.db.asUser(userId), creditsOf(userId), 'usd')).balance;

const lines = `
  SELECT debit, credit, currency, amount, user_id, created_at FROM ledger_transfers
   WHERE cause LIKE `;

test('credits from before there was the ledger are in it, as are those that its predecessor adds', async () => {
  const [ada, bob] = [await newUser(database), await newUser(database)];
  const [before] = await owner(`SELECT balance FROM ledger_accounts WHERE name = 'referrals'`);
  await migrateLedger('down');
  await owner(`${entered(ada, bob)}; ${entered(bob, ada)}; ${entered(ada, 'another')}`);
  await migrateLedger('up');

  expect([await creditsIn(ada), await creditsIn(bob)]).toEqual([2_000_000n, 1_000_000n]);
  const moved = { debit: 'referrals', currency: 'usd', amount: '1000000' };
  expect(await owner(`${lines} 'referral:${bob}:%'`)).toEqual([
    { ...moved, credit: creditsOf(bob), user_id: bob, created_at: new Date('2026-01-01') },
  ]);

  await database.db.asPlatform().query(entered(bob, 'late'));
  expect(await creditsIn(bob)).toBe(2_000_000n);
  await expect(database.db.asPlatform().query(entered(bob, 'late'))).rejects.toThrow('once');
  expect(await creditsIn(bob)).toBe(2_000_000n);
  expect(await owner(`SELECT balance FROM ledger_accounts WHERE name = 'referrals'`)).toEqual([
    { balance: String(BigInt(before?.balance as string) - 4_000_000n) },
  ]);
});

test('credits of the ledger are entries again where it is taken back', async () => {
  const ada = await newUser(database);
  await transfer(database.db.asPlatform(), {
    ...{ debit: 'referrals', credit: creditsOf(ada), amount: 1_000_000n, currency: 'usd' },
    cause: `referral:${ada}:somebody:else`,
  });
  await migrateLedger('down');
  const entries = await owner(`SELECT amount, reason, reference FROM credit_entries
                                WHERE user_id = '${ada}'`);
  await migrateLedger('up');
  expect(entries).toEqual([{ amount: 100, reason: 'referral', reference: 'somebody:else' }]);
  expect(await creditsIn(ada)).toBe(1_000_000n);
});
