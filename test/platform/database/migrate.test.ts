import { Sequelize } from 'sequelize';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  DevelopmentDatabaseError,
  migrate,
  UnsafeServingRoleError,
} from '../../../src/platform/database/migrate.js';
import { MIGRATIONS } from '../../../src/platform/database/migrations/index.js';
import { policySql } from '../../../src/platform/database/migrations/migration.js';
import { TABLES } from '../../../src/platform/database/models.js';
import { defineTable } from '../../../src/platform/database/schema/table.js';
import { roleOf } from '../../../src/platform/database/roles.js';
import { emptyDatabase, holdPostgres } from '../../support/postgres.js';
import { catalogFacts, COLUMNS, INDEXES, POLICIES, queryRows } from './catalog.js';

type EmptyDatabase = Awaited<ReturnType<typeof emptyDatabase>>;

const NAMES = MIGRATIONS.map(({ name }) => name);

let database: EmptyDatabase;

beforeAll(holdPostgres);

beforeEach(async () => {
  database = await emptyDatabase();
});

afterEach(async () => {
  await database.close();
});

/** Records migrations as done. */
const record = (names: readonly string[]) =>
  queryRows(
    database.ownerUrl,
    `INSERT INTO schema_migrations VALUES ${names.map((name) => `('${name}')`).join(', ')}`,
  );

describe('migrations', () => {
  test('migrations create the schema that the tables describe', async () => {
    await migrate(database.ownerUrl, database.servingRole);
    const synced = await emptyDatabase();
    try {
      const options = { logging: false, define: { underscored: true } };
      const sequelize = new Sequelize(synced.ownerUrl, options);
      for (const table of TABLES) defineTable(sequelize, table.name, table);
      try {
        await sequelize.sync();
      } finally {
        await sequelize.close();
      }
      const policies = TABLES.map(policySql);
      await queryRows(synced.ownerUrl, policies.join(''));

      for (const facts of [COLUMNS, INDEXES, POLICIES]) {
        const described = await catalogFacts(synced.ownerUrl, facts);
        expect(described.length).toBeGreaterThan(0);
        expect(await catalogFacts(database.ownerUrl, facts)).toEqual(described);
      }
    } finally {
      await synced.close();
    }
  });

  test('numbers migrations without gaps', () => {
    const numbers = NAMES.map((name) => /^\d{3}(?=-[a-z])/.exec(name)?.[0]);
    expect(numbers).toEqual(NAMES.map((_, n) => String(n + 1).padStart(3, '0')));
  });

  test('migrations run once when several processes migrate at the same time', async () => {
    const { ownerUrl, servingRole } = database;
    const runs = await Promise.all([1, 2, 3].map(() => migrate(ownerUrl, servingRole)));
    expect(runs.flat()).toEqual(NAMES);
  });

  test('migrations do nothing when the schema is current', async () => {
    await migrate(database.ownerUrl, database.servingRole);
    expect(await migrate(database.ownerUrl, database.servingRole)).toEqual([]);
  });

  test('migrations are rolled back together when one fails', async () => {
    await queryRows(database.ownerUrl, 'CREATE TABLE messages (in_the_way text)');
    await expect(migrate(database.ownerUrl, database.servingRole)).rejects.toThrow();
    expect(await queryRows(database.ownerUrl, `SELECT to_regclass('users') AS left`)).toEqual([
      { left: null },
    ]);
  });

  test.each([
    ['four digits', ['0001-accounts', '0002-agents']],
    ['a migration for each change', ['001-accounts', '002-agents', '003-hosts', '004-heartbeats']],
    ['gaps between numbers', [...NAMES.slice(0, 3), ...NAMES.slice(4)]],
  ])('refuses a database of a development version, which had %s', async (_, names) => {
    const { ownerUrl, servingRole } = database;
    await queryRows(ownerUrl, 'CREATE TABLE schema_migrations (name text PRIMARY KEY)');
    await record(names);
    const refused = await migrate(ownerUrl, servingRole).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(DevelopmentDatabaseError);
    expect(String(refused)).toContain('delete it (in development: the folder .data)');
    expect(await queryRows(ownerUrl, `SELECT to_regclass('users') AS left`)).toEqual([
      { left: null },
    ]);
  });

  test('leaves a database of a newer release unchanged', async () => {
    const { ownerUrl, servingRole } = database;
    await migrate(ownerUrl, servingRole);
    await record(['999-later']);
    expect(await migrate(ownerUrl, servingRole)).toEqual([]);
  });

  test('migrations refuse a serving role that owns the tables, bypasses policies, or is missing', async () => {
    const [superuser] = await queryRows<{ rolname: string }>(
      database.ownerUrl,
      'SELECT rolname FROM pg_roles WHERE rolsuper LIMIT 1',
    );
    for (const role of [roleOf(database.ownerUrl), superuser?.rolname ?? '', 'not_there']) {
      await expect(migrate(database.ownerUrl, role)).rejects.toThrow(UnsafeServingRoleError);
    }
  });
});
