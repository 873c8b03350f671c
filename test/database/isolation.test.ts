import { DatabaseError, QueryTypes, type Transaction } from 'sequelize';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Database, type TenantDatabase } from '../../src/database/database.js';
import { roleOf } from '../../src/database/roles.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';
import { queryRows } from './catalog.js';
import { insertSql, ownerColumn, PLATFORM_TABLES, ROWS } from './rows.js';

const TABLES = Object.keys(ROWS);
const TENANT_TABLES = TABLES.filter((table) => !PLATFORM_TABLES.includes(table));

let database: TestDatabase;
let db: Database;

beforeAll(async () => {
  database = await testDatabase();
  db = database.db;
  for (const user of ['alice', 'bob']) {
    for (const [table, row] of Object.entries(ROWS)) await asOwner(insertSql(table, row(user, 1)));
  }
});

afterAll(async () => {
  await database.close();
});

const asOwner = (sql: string) => queryRows<Record<string, unknown>>(database.ownerUrl, sql);

/** Runs one statement as the tenant; answers what it returns. */
const runAs = (tenant: TenantDatabase, sql: string) =>
  tenant.transaction((transaction) => rows(sql, transaction));

const rows = (sql: string, transaction?: Transaction) =>
  db.sequelize.query<Record<string, unknown>>(sql, { type: QueryTypes.SELECT, transaction });

/** 42501, insufficient_privilege: PostgreSQL's for a missing GRANT and for a policy alike. */
async function refused(work: Promise<unknown>): Promise<void> {
  const error: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(DatabaseError);
  expect(error).toMatchObject({ parent: { code: '42501' } });
}

const isRefusal = (error: unknown) =>
  error instanceof DatabaseError && 'code' in error.parent && error.parent.code === '42501';

describe('every table', () => {
  test('is known to this test', async () => {
    const tables = await asOwner(
      `SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace
          AND relkind IN ('r', 'p', 'v', 'm', 'f') AND relname <> 'schema_migrations'`,
    );
    expect(tables.map(({ relname }) => relname).sort()).toEqual([...TABLES].sort());
  });

  test('has a restrictive policy on all commands, for what is read and what is written', async () => {
    const tables = await asOwner(
      `SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace
          AND c.relkind = 'r' AND c.relname <> 'schema_migrations' AND c.relrowsecurity
          AND EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND NOT p.polpermissive
                        AND p.polcmd = '*' AND p.polroles = '{0}'
                        AND p.polqual IS NOT NULL AND p.polwithcheck IS NOT NULL)`,
    );
    expect(tables.map(({ relname }) => relname).sort()).toEqual([...TABLES].sort());
  });

  test.each(TABLES)('%s shows nothing when no tenant is set', async (table) => {
    expect(await rows(`SELECT * FROM ${table}`)).toEqual([]);
    expect(await runAs(db.asUser(''), `SELECT * FROM ${table}`)).toEqual([]);
  });

  test.each(TABLES)('%s shows the platform the rows of all', async (table) => {
    const seen = await runAs(db.asPlatform(), `SELECT * FROM ${table}`);
    const owners = seen.map((row) => row[ownerColumn(table)]);
    expect(owners).toEqual(expect.arrayContaining(['alice', 'bob']));
  });

  test.each(TENANT_TABLES)('%s shows a user just their own rows', async (table) => {
    const seen = await runAs(db.asUser('alice'), `SELECT * FROM ${table}`);
    expect([...new Set(seen.map((row) => row[ownerColumn(table)]))]).toEqual(['alice']);
  });

  test.each(PLATFORM_TABLES)('%s shows a user nothing', async (table) => {
    expect(await runAs(db.asUser('alice'), `SELECT * FROM ${table}`)).toEqual([]);
  });

  test.each(TABLES)("%s takes no row in another user's name", async (table) => {
    const row = ROWS[table]?.('bob', 2) ?? {};
    await refused(runAs(db.asUser('alice'), insertSql(table, row)));
  });

  test.each(TABLES)("%s lets nobody change another user's row", async (table) => {
    const [updatable] = await asOwner(
      `SELECT attname FROM pg_attribute WHERE attrelid = '${table}'::regclass AND attnum > 0
          AND has_column_privilege('${roleOf(database.url)}', attrelid, attnum, 'UPDATE')`,
    );
    const column = (updatable?.attname as string | undefined) ?? ownerColumn(table);
    const change = `UPDATE ${table} SET ${column} = ${column} RETURNING *`;
    const changed = await runAs(db.asUser('alice'), change).catch((error: unknown) => {
      if (updatable === undefined && isRefusal(error)) return [];
      throw error;
    });
    expect(changed.filter((row) => row[ownerColumn(table)] !== 'alice')).toEqual([]);
    expect(changed).toHaveLength(updatable && TENANT_TABLES.includes(table) ? 1 : 0);
  });

  test.each(TABLES)("%s lets nobody hand over a row, or delete another user's", async (table) => {
    const owner = ownerColumn(table);
    const before = await asOwner(`SELECT * FROM ${table} WHERE ${owner} = 'bob'`);
    for (const attempt of [
      `UPDATE ${table} SET ${owner} = 'bob' WHERE ${owner} = 'alice' RETURNING *`,
      `DELETE FROM ${table} WHERE ${owner} = 'bob' RETURNING *`,
    ]) {
      const done = await runAs(db.asUser('alice'), attempt).catch((error: unknown) => {
        if (isRefusal(error)) return [];
        throw error;
      });
      expect(done).toEqual([]);
    }
    expect(await asOwner(`SELECT * FROM ${table} WHERE ${owner} = 'bob'`)).toEqual(before);
  });
});

describe('what belongs to an agent', () => {
  test.each(['agent_secrets', 'operations', 'messages'])(
    "cannot be put on another user's agent through %s",
    async (table) => {
      const row = { ...ROWS[table]?.('alice', 2), agent_id: 'bob-agent-1' };
      await expect(runAs(db.asUser('alice'), insertSql(table, row))).rejects.toMatchObject({
        parent: { code: '23503' },
      });
    },
  );
});

describe('the tenant', () => {
  const ids = 'SELECT id FROM users ORDER BY id';

  test('does not outlive its transaction on a pooled connection', async () => {
    const single = new Database(database.url, { maxConnections: 1 });
    const seen = (transaction?: Transaction) =>
      single.sequelize.query<{ id: string }>(ids, { type: QueryTypes.SELECT, transaction });
    try {
      for (const tenant of [single.asUser('alice'), single.asPlatform()]) {
        expect(await tenant.transaction(seen)).not.toEqual([]);
        expect(await seen()).toEqual([]);
        const fails = tenant.transaction(async (transaction) => {
          await seen(transaction);
          throw new RangeError('on purpose');
        });
        await expect(fails).rejects.toThrow(RangeError);
        expect(await seen()).toEqual([]);
        expect(await single.asUser('bob').transaction(seen)).toEqual([{ id: 'bob' }]);

        expect(await tenant.select(ids, {})).not.toEqual([]);
        expect(await seen()).toEqual([]);
        const refusedSelect = tenant.select('SELECT 1 / count(*) FROM users WHERE id IS NULL', {});
        await expect(refusedSelect).rejects.toThrow('division by zero');
        expect(await seen()).toEqual([]);
        expect(await single.asUser('bob').select(ids, {})).toEqual([{ id: 'bob' }]);
      }
    } finally {
      await single.close();
    }
  });

  test('cannot be widened by what a user id says', async () => {
    for (const id of [
      "x', true), set_config('app.platform', 'on', true) --",
      "x\\', true), set_config('app.platform', 'on', true) --",
      "alice'; SELECT set_config('app.platform', 'on', false); --",
      'nobody\0',
    ]) {
      expect(await runAs(db.asUser(id), ids)).toEqual([]);
      expect(await db.asUser(id).select(ids, {})).toEqual([]);
      const own = 'SELECT id FROM users WHERE id <> :id';
      expect(await db.asUser('alice').select(own, { id })).toEqual([{ id: 'alice' }]);
    }
  });

  test('is no value of what is read for it', async () => {
    const values = { id: ':tenantId', tenantId: 'bob' };
    const read = `SELECT :id AS "said", :tenantId AS "named", id FROM users`;
    expect(await db.asUser('alice').select(read, values)).toEqual([
      { said: ':tenantId', named: 'alice', id: 'alice' },
    ]);
  });

  test('takes what was done back when the work fails', async () => {
    const before = await asOwner('SELECT count(*) FROM messages');
    const work = db.asUser('alice').transaction(async (transaction) => {
      const row = ROWS.messages?.('alice', 3) ?? {};
      await db.sequelize.query(insertSql('messages', row), { transaction });
      throw new RangeError('on purpose');
    });
    await expect(work).rejects.toThrow(RangeError);
    expect(await asOwner('SELECT count(*) FROM messages')).toEqual(before);
  });

  test('holds in a transaction within a transaction', async () => {
    const seen = await db
      .asUser('alice')
      .transaction((outer) =>
        db.sequelize.transaction({ transaction: outer }, (inner) => rows(ids, inner)),
      );
    expect(seen).toEqual([{ id: 'alice' }]);
  });
});

describe('the serving role', () => {
  test('has no way around the policies', async () => {
    const role = roleOf(database.url);
    expect(
      await asOwner(
        `SELECT rolsuper, rolbypassrls, rolcreaterole, rolcreatedb,
                pg_has_role(rolname, current_user, 'MEMBER') AS is_owner,
                (SELECT count(*)::int FROM pg_class WHERE relowner = r.oid) AS owned,
                has_schema_privilege(rolname, 'public', 'CREATE') AS makes_tables
           FROM pg_roles r WHERE rolname = '${role}'`,
      ),
    ).toEqual([
      {
        rolsuper: false,
        rolbypassrls: false,
        rolcreaterole: false,
        rolcreatedb: false,
        is_owner: false,
        owned: 0,
        makes_tables: false,
      },
    ]);
    await refused(rows('SET row_security = off; SELECT * FROM agents'));
    await refused(rows(`SET ROLE ${roleOf(database.ownerUrl)}`));
    await refused(rows('ALTER TABLE agents DISABLE ROW LEVEL SECURITY'));
    await refused(rows('DROP POLICY agents_tenant ON agents'));
    await refused(rows('TRUNCATE messages'));
    await refused(rows('SELECT * FROM schema_migrations'));
  });

  test('is alone in running the functions that look behind the policies', async () => {
    const functions = await asOwner(
      `SELECT proname, proconfig, has_function_privilege('${roleOf(database.url)}', oid, 'EXECUTE')
                AS serving, proacl::text LIKE '%{=X%' OR proacl::text LIKE '%,=X%' AS everybody
         FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prosecdef ORDER BY proname`,
    );
    const expected = { proconfig: ['search_path=pg_catalog, pg_temp'], serving: true };
    expect(functions).toEqual(
      [
        'find_account',
        'find_agent_callers',
        'find_api_keys',
        'find_session',
        'hold_tokens',
        'host_loads',
        'keep_reservations',
        'roll_up_usage',
        'settle_abandoned',
        'settle_usage',
      ].map((proname) => ({
        proname,
        ...expected,
        everybody: false,
      })),
    );
  });

  test('works under bounds of time', async () => {
    for (const bound of [
      'statement_timeout',
      'lock_timeout',
      'idle_in_transaction_session_timeout',
    ]) {
      const [setting] = await rows(`SHOW ${bound}`);
      expect(setting?.[bound]).toMatch(/^\d+s$/);
    }
  });
});
