import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { migrate } from '../../../src/platform/database/migrate.js';
import { emptyDatabase, holdPostgres } from '../../support/postgres.js';
import { queryRows } from './catalog.js';
import { migrateToBefore } from './migrate-to-before.js';

let database: Awaited<ReturnType<typeof emptyDatabase>>;

beforeAll(holdPostgres);
beforeEach(async () => {
  database = await emptyDatabase();
});
afterEach(() => database.close());

test('a subscription of an earlier release is the grant of its user', async () => {
  const owner = (sql: string) => queryRows(database.ownerUrl, sql);
  await migrateToBefore(database, '025-subscriptions');
  await owner(
    `INSERT INTO users (id, email, name, created_at, updated_at)
     VALUES ('ada', 'ada@example.com', 'ada', now(), now())`,
  );
  await owner(
    `INSERT INTO subscriptions (user_id, plan, status, source, period_start, created_at, updated_at)
     VALUES ('ada', 'solo', 'active', 'operator', now(), now(), now())`,
  );
  await migrate(database.ownerUrl, database.servingRole);
  expect(await owner('SELECT * FROM subscriptions')).toMatchObject([
    { user_id: 'ada', kind: 'plan', plan: 'solo', source: 'operator', processor_id: null },
  ]);
  expect(await owner(`SELECT plan, holds FROM current_subscription('ada', 'plan')`)).toEqual([
    { plan: 'solo', holds: true },
  ]);
});

test('the migration of subscriptions is marked as one that breaks older releases', async () => {
  await migrate(database.ownerUrl, database.servingRole);
  const marked = await queryRows(
    database.ownerUrl,
    'SELECT name FROM schema_migrations WHERE breaks_older',
  );
  expect(marked).toEqual([{ name: '025-subscriptions' }]);
});
