import { Sequelize } from 'sequelize';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  DevelopmentDatabaseError,
  migrate,
  migrateDown,
  UnsafeServingRoleError,
} from '../../../src/platform/database/migrate.js';
import { MIGRATIONS } from '../../../src/platform/database/migrations/index.js';
import { policySql } from '../../../src/platform/database/migrations/migration.js';
import { TABLES } from '../../../src/platform/database/models.js';
import { defineTable } from '../../../src/platform/database/schema/table.js';
import { roleOf } from '../../../src/platform/database/roles.js';
import { emptyDatabase, holdPostgres } from '../../support/postgres.js';
import { catalogFacts, COLUMNS, INDEXES, POLICIES, queryRows, wholeCatalog } from './catalog.js';

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

describe('migrations', () => {
  test('make the schema that the tables describe', async () => {
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

  test('are taken back without a trace, and make the same schema again', async () => {
    const { ownerUrl, servingRole } = database;
    const before = await wholeCatalog(ownerUrl);
    expect(await migrate(ownerUrl, servingRole)).toEqual(NAMES);
    const migrated = await wholeCatalog(ownerUrl);

    expect(await migrateDown(ownerUrl, servingRole)).toEqual([...NAMES].reverse());
    expect(await wholeCatalog(ownerUrl)).toEqual(before);
    expect(await queryRows(ownerUrl, `SELECT to_regclass('schema_migrations') AS left`)).toEqual([
      { left: null },
    ]);

    await migrate(ownerUrl, servingRole);
    expect(await wholeCatalog(ownerUrl)).toEqual(migrated);
  });

  test('run once when several processes migrate at the same time', async () => {
    const { ownerUrl, servingRole } = database;
    const runs = await Promise.all([1, 2, 3].map(() => migrate(ownerUrl, servingRole)));
    expect(runs.flat()).toEqual(NAMES);
  });

  test('do nothing when there is nothing to do', async () => {
    await migrate(database.ownerUrl, database.servingRole);
    expect(await migrate(database.ownerUrl, database.servingRole)).toEqual([]);
  });

  test('undo the whole run when one fails', async () => {
    await queryRows(database.ownerUrl, 'CREATE TABLE messages (in_the_way text)');
    await expect(migrate(database.ownerUrl, database.servingRole)).rejects.toThrow();
    expect(await queryRows(database.ownerUrl, `SELECT to_regclass('users') AS left`)).toEqual([
      { left: null },
    ]);
  });

  test('refuse a database that a development version has migrated', async () => {
    const { ownerUrl, servingRole } = database;
    await queryRows(
      ownerUrl,
      `CREATE TABLE schema_migrations (name text PRIMARY KEY);
       INSERT INTO schema_migrations VALUES ('0001-accounts')`,
    );
    await expect(migrate(ownerUrl, servingRole)).rejects.toThrow(DevelopmentDatabaseError);
    expect(await queryRows(ownerUrl, `SELECT to_regclass('users') AS left`)).toEqual([
      { left: null },
    ]);
  });

  test('refuse a serving role that owns the tables, bypasses policies, or is not there', async () => {
    const [superuser] = await queryRows<{ rolname: string }>(
      database.ownerUrl,
      'SELECT rolname FROM pg_roles WHERE rolsuper LIMIT 1',
    );
    for (const role of [roleOf(database.ownerUrl), superuser?.rolname ?? '', 'not_there']) {
      await expect(migrate(database.ownerUrl, role)).rejects.toThrow(UnsafeServingRoleError);
    }
  });
});
