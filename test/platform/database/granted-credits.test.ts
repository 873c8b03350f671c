import { randomUUID } from 'node:crypto';
import { Sequelize } from 'sequelize';
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { checkLedger, LEDGER_CHECKS } from '../../../src/money/ledger-check/check-ledger.js';
import { Database } from '../../../src/platform/database/database.js';
import { migrate } from '../../../src/platform/database/migrate.js';
import { MIGRATIONS } from '../../../src/platform/database/migrations/index.js';
import { emptyDatabase, holdPostgres } from '../../support/postgres.js';
import { queryRows } from './catalog.js';

const attack = { tags: 'attack' };

let database: Awaited<ReturnType<typeof emptyDatabase>>;

beforeAll(holdPostgres);
beforeEach(async () => {
  database = await emptyDatabase();
  await migrateBefore('017-granted-credits');
});
afterEach(() => database.close());

const owner = <Row extends object>(sql: string) => queryRows<Row>(database.ownerUrl, sql);

/** Migrates to the release before a migration. */
async function migrateBefore(last: string): Promise<void> {
  const sequelize = new Sequelize(database.ownerUrl, { logging: false });
  await owner('CREATE TABLE schema_migrations (name text PRIMARY KEY)');
  await sequelize.transaction(async (transaction) => {
    const queryInterface = sequelize.getQueryInterface();
    const { servingRole } = database;
    for (const { migration, name } of MIGRATIONS) {
      if (name === last) break;
      await migration({ queryInterface, transaction, servingRole });
      await sequelize.query(`INSERT INTO schema_migrations VALUES ('${name}')`, { transaction });
    }
  });
  await sequelize.close();
}

async function user(isVerified = true): Promise<string> {
  const id = randomUUID();
  await owner(
    `INSERT INTO users (id, email, name, email_verified_at, created_at, updated_at)
     VALUES ('${id}', '${id}@example.com', 'Ada', ${isVerified ? 'now()' : 'NULL'}, now(), now())`,
  );
  return id;
}

const move = (cause: string, debit: string, credit: string, amount: number) =>
  owner(`SELECT set_config('app.platform', 'on', false),
                ledger_transfer('${cause}', '${debit}', '${credit}', 'usd', ${amount})`);
const held = (cause: string, id: string, amount: number) =>
  owner(`SELECT set_config('app.platform', 'on', false),
                ledger_hold('${cause}', 'user:${id}:credits', 'user:${id}:spent', 'usd', ${amount},
                            now() + interval '1 hour')`);

/** Credits both sides of a referral, as the release before did. */
async function refer(referrer: string, isVerified: boolean): Promise<string> {
  const id = await user(isVerified);
  await move(`referral:${referrer}:${id}`, 'referrals', `user:${referrer}:credits`, 100);
  await move(`referral:${id}:${referrer}`, 'referrals', `user:${id}:credits`, 100);
  return id;
}

const spend = (id: string, amount: number) =>
  move(`gateway:${randomUUID()}`, `user:${id}:credits`, `user:${id}:spent`, amount);

async function credits(id: string) {
  const rows = await owner<{ kind: string; balance: string; held: string }>(
    `SELECT split_part(name, ':', 3) AS kind, balance, held FROM ledger_accounts
      WHERE name IN ('user:${id}:credits', 'user:${id}:granted')`,
  );
  return Object.fromEntries(
    rows.map(({ balance, held, kind }) => [kind, [Number(balance), Number(held)]]),
  );
}

const holdsFor = async (id: string) =>
  (
    await owner<{ hold: string }>(
      `SELECT cause || ' ' || amount AS hold FROM ledger_holds
        WHERE cause LIKE 'unverified:${id}:%' AND state = 'open' AND expires_at = 'infinity'
        ORDER BY 1`,
    )
  ).map(({ hold }) => hold);

async function upgraded(): Promise<void> {
  await migrate(database.ownerUrl, database.servingRole);
  const db = new Database(database.url, { maxConnections: 1 });
  expect((await checkLedger(db, LEDGER_CHECKS)).differences).toEqual([]);
  await db.close();
}

test(
  'the migration moves what is left of referral credits, and no bought credits',
  attack,
  async () => {
    const ada = await user();
    const bob = await refer(ada, true);
    await refer(ada, true);
    await spend(ada, 30);
    await spend(bob, 100);
    const eve = await refer(ada, true);
    await move('purchase:1', 'external', `user:${eve}:credits`, 500);
    await spend(eve, 40);
    await held('gateway:1', eve, 7);
    const bought = await user();
    await move('purchase:2', 'external', `user:${bought}:credits`, 500);
    await upgraded();
    expect(await credits(ada)).toEqual({ credits: [0, 0], granted: [270, 0] });
    expect(await credits(bob)).toEqual({ credits: [0, 0] });
    expect(await credits(eve)).toEqual({ credits: [500, 7], granted: [60, 0] });
    expect(await credits(bought)).toEqual({ credits: [500, 0] });
  },
);

test('the migration moves open holds with the credits that they hold', async () => {
  const ada = await user();
  await refer(ada, true);
  await held('gateway:1', ada, 30);
  await upgraded();
  expect(await credits(ada)).toEqual({ credits: [0, 0], granted: [100, 30] });
  const [posted] = await owner<{ outcome: string }>(
    `SELECT set_config('app.platform', 'on', false),
            ledger_post_all(ARRAY['gateway:1', 'gateway:1:granted']) AS outcome`,
  );
  expect(posted?.outcome).toBe('posted');
  expect(await credits(ada)).toEqual({ credits: [0, 0], granted: [70, 0] });
});

test('the migration holds what is left of credits for addresses that are not verified', async () => {
  const ada = await user();
  const bob = await refer(ada, false);
  await refer(ada, true);
  const eve = await refer(ada, false);
  await spend(ada, 150);
  const gone = await refer(ada, false);
  await owner(`DELETE FROM users WHERE id = '${gone}'`);
  await upgraded();
  expect(await credits(ada)).toEqual({ credits: [0, 0], granted: [250, 200] });
  expect(await holdsFor(bob)).toEqual([
    `unverified:${bob}:new 100`,
    `unverified:${bob}:referrer 100`,
  ]);
  expect(await holdsFor(eve)).toEqual([
    `unverified:${eve}:new 100`,
    `unverified:${eve}:referrer 100`,
  ]);
  expect(await holdsFor(gone)).toEqual([]);
});

test('the migration holds no more than is left', async () => {
  const ada = await user();
  const bob = await refer(ada, false);
  const eve = await refer(ada, false);
  await spend(ada, 130);
  await upgraded();
  expect(await credits(ada)).toEqual({ credits: [0, 0], granted: [70, 70] });
  expect(await holdsFor(eve)).toEqual([
    `unverified:${eve}:new 100`,
    `unverified:${eve}:referrer 70`,
  ]);
  expect(await holdsFor(bob)).toEqual([`unverified:${bob}:new 100`]);
});
