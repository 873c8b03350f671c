import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { migrate } from '../../../src/platform/database/migrate.js';
import { emptyDatabase, holdPostgres } from '../../support/postgres.js';
import { queryRows } from './catalog.js';
import { migrateToBefore } from './migrate-to-before.js';

const attack = { tags: 'attack' };

const NAME = '018-key-scopes';

let database: Awaited<ReturnType<typeof emptyDatabase>>;

beforeAll(holdPostgres);
beforeEach(async () => {
  database = await emptyDatabase();
});
afterEach(() => database.close());

const owner = (sql: string) => queryRows(database.ownerUrl, sql);

const addUser = (id: string) =>
  owner(
    `INSERT INTO users (id, email, name, created_at, updated_at)
     VALUES ('${id}', '${id}@example.com', '${id}', now(), now())`,
  );

const addKey = (id: string, userId: string) =>
  owner(
    `INSERT INTO api_keys (id, user_id, name, key_preview, key_hash, lookup_hash, created_at)
     VALUES ('${id}', '${userId}', 'ci', 'sk_', 'bcrypt', '${id}', now())`,
  );

test('existing keys get all scopes but money, and each owner one mail', attack, async () => {
  await migrateToBefore(database, NAME);
  for (const id of ['ada', 'bob', 'cleo']) await addUser(id);
  for (const [id, userId] of [
    ['k1', 'ada'],
    ['k2', 'ada'],
    ['k3', 'bob'],
  ] as const) {
    await addKey(id, userId);
  }

  const { ownerUrl, servingRole } = database;
  expect(await migrate(ownerUrl, servingRole)).toContain(NAME);
  expect(await migrate(ownerUrl, servingRole)).toEqual([]);

  const scopes = ['agents', 'ai', 'files', 'gateway'];
  expect(await owner('SELECT id, scopes FROM api_keys ORDER BY id')).toEqual(
    ['k1', 'k2', 'k3'].map((id) => ({ id, scopes })),
  );
  const mails = await owner(
    `SELECT kind, address, user_id, settled_at FROM mails ORDER BY address`,
  );
  const kind = 'keys-got-scopes';
  expect(mails).toEqual([
    { kind, address: 'ada@example.com', user_id: 'ada', settled_at: null },
    { kind, address: 'bob@example.com', user_id: 'bob', settled_at: null },
  ]);
});

test('the running release still makes and finds keys during an update', async () => {
  await migrateToBefore(database, NAME);
  await migrate(database.ownerUrl, database.servingRole);
  await addUser('ada');
  await addKey('k1', 'ada');
  for (const sql of [
    `SELECT * FROM find_key_holders('{k1}')`,
    `SELECT * FROM find_keys_beginning('none', 'k1')`,
  ]) {
    const [found] = await owner(sql);
    expect(found).toMatchObject({ key_id: 'k1', user_id: 'ada' });
    // Another column would fail the statements that are prepared already.
    expect(found).not.toHaveProperty('scopes');
  }
});
