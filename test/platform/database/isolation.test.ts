// @module-tag attack
import { DatabaseError } from 'sequelize';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  Database,
  type TenantDatabase,
  type Statements,
} from '../../../src/platform/database/database.js';
import { roleOf } from '../../../src/platform/database/roles.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
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

/** Runs one statement as the tenant and returns its rows. */
const runAs = (tenant: TenantDatabase, sql: string) => tenant.query<Record<string, unknown>>(sql);

/** Runs one statement with no tenant set. */
const rows = (sql: string) => db.call<Record<string, unknown>>({ text: sql }, []);

/** Expects code 42501, insufficient_privilege: PostgreSQL's for a missing GRANT and for a policy. */
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
  test('every table is listed in this test', async () => {
    const tables = await asOwner(
      `SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace
          AND relkind IN ('r', 'p', 'v', 'm', 'f') AND relname <> 'schema_migrations'`,
    );
    expect(tables.map(({ relname }) => relname).sort()).toEqual([...TABLES].sort());
  });

  test('every table has a restrictive policy on all commands, for reads and for writes', async () => {
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

  test.each(TABLES)('%s shows the platform the rows of all users', async (table) => {
    const seen = await runAs(db.asPlatform(), `SELECT * FROM ${table}`);
    const owners = seen.map((row) => row[ownerColumn(table)]);
    expect(owners).toEqual(expect.arrayContaining(['alice', 'bob']));
  });

  test.each(TENANT_TABLES)('%s shows a user only their own rows', async (table) => {
    const seen = await runAs(db.asUser('alice'), `SELECT * FROM ${table}`);
    expect([...new Set(seen.map((row) => row[ownerColumn(table)]))]).toEqual(['alice']);
  });

  test.each(PLATFORM_TABLES)('%s shows a user nothing', async (table) => {
    expect(await runAs(db.asUser('alice'), `SELECT * FROM ${table}`)).toEqual([]);
  });

  test.each(TABLES)("%s refuses a row in another user's name", async (table) => {
    const row = ROWS[table]?.('bob', 2) ?? {};
    await refused(runAs(db.asUser('alice'), insertSql(table, row)));
  });

  test.each(TABLES)("%s refuses a change of another user's row", async (table) => {
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

  test.each(TABLES)(
    "%s refuses to hand over a row or to delete another user's row",
    async (table) => {
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
    },
  );
});

describe('rows of an agent', () => {
  test.each(['agent_secrets', 'operations', 'messages'])(
    "rows cannot be added to another user's agent through %s",
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

  test.each(['transaction', 'statements'] as const)(
    'the tenant is reset on a pooled connection after its %s',
    async (how) => {
      const single = new Database(database.url, { maxConnections: 1 });
      const unset = () => single.call({ text: ids }, []);
      try {
        for (const tenant of [single.asUser('alice'), single.asPlatform()]) {
          const within = (work: (db: Statements) => Promise<unknown>) => tenant[how](work);
          expect(await within((db) => db.query(ids))).not.toEqual([]);
          const fails = within(async (db) => {
            await db.query(ids);
            throw new RangeError('on purpose');
          });
          await expect(fails).rejects.toThrow(RangeError);
          expect(await single.asUser('')[how]((db) => db.query(ids))).toEqual([]);
          expect(await single.asUser('bob')[how]((db) => db.query(ids))).toEqual([{ id: 'bob' }]);

          expect(await tenant.query(ids)).not.toEqual([]);
          expect(await unset()).toEqual([]);
          const refusedQuery = tenant.query('SELECT 1 / count(*) FROM users WHERE id IS NULL');
          await expect(refusedQuery).rejects.toThrow('division by zero');
          expect(await unset()).toEqual([]);
          expect(await single.asUser('bob').query(ids)).toEqual([{ id: 'bob' }]);
        }
      } finally {
        await single.close();
      }
    },
  );

  test.each(['by itself', 'in a transaction'])(
    'the tenant cannot be widened by the text of a user id, %s',
    async (how) => {
      const as = (id: string, sql: string, values = {}) =>
        how === 'by itself'
          ? db.asUser(id).query(sql, values)
          : db.asUser(id).transaction((open) => open.query(sql, values));
      for (const id of [
        "x', true), set_config('app.platform', 'on', true) --",
        "x\\', true), set_config('app.platform', 'on', true) --",
        "alice'; SELECT set_config('app.platform', 'on', false); --",
        'nobody\0',
      ]) {
        expect(await as(id, ids)).toEqual([]);
        expect(await as('alice', 'SELECT id FROM users WHERE id <> $id', { id })).toEqual([
          { id: 'alice' },
        ]);
      }
    },
  );

  test('the tenant is not changed by query values of the same name', async () => {
    const values = { id: '$userId', userId: 'bob' };
    const read = `SELECT $id::text AS "said", $userId::text AS "named", id FROM users`;
    expect(await db.asUser('alice').query(read, values)).toEqual([
      { said: '$userId', named: 'bob', id: 'alice' },
    ]);
  });

  test.each(['transaction', 'statements'] as const)(
    "the tenant's changes are rolled back when the work of a %s fails",
    async (how) => {
      const before = await asOwner('SELECT count(*) FROM messages');
      const work = db.asUser('alice')[how](async (open) => {
        await open.query(insertSql('messages', ROWS.messages?.('alice', 3) ?? {}));
        throw new RangeError('on purpose');
      });
      await expect(work).rejects.toThrow(RangeError);
      expect(await asOwner('SELECT count(*) FROM messages')).toEqual(before);
    },
  );

  test("the tenant's statements are rolled back if one is refused, awaited or not", async () => {
    const before = await asOwner('SELECT count(*) FROM messages');
    const work = db.asUser('alice').statements(async (open) => {
      const insert = open.query(insertSql('messages', ROWS.messages?.('alice', 3) ?? {}));
      open.query('SELECT 1 / 0').catch(() => undefined);
      await insert;
    });
    await expect(work).rejects.toThrow('rolled the transaction back');
    expect(await asOwner('SELECT count(*) FROM messages')).toEqual(before);
  });

  test("the tenant's statements run in order, and their changes remain when they have ended", async () => {
    const seen = await db
      .asUser('alice')
      .statements((open) =>
        Promise.all([
          open.query(`UPDATE users SET name = 'sent first' WHERE id = 'alice'`),
          open.query('SELECT name FROM users'),
        ]),
      );
    expect(seen[1]).toEqual([{ name: 'sent first' }]);
    expect(await db.asUser('alice').query('SELECT name FROM users')).toEqual(seen[1]);
  });

  test('the tenant applies to all operations of a transaction on its tables', async () => {
    const done = db.asUser('alice').transaction(async (open) => ({
      all: (await open.User.findAll()).map(({ id }) => id),
      found: await open.User.findByPk('bob'),
      counted: await open.User.count(),
      changed: await open.Subscription.update({ source: 'x' }, { where: { userId: 'bob' } }),
      deleted: await open.Session.destroy({ where: { userId: 'bob' } }),
    }));
    expect(await done).toEqual({ all: ['alice'], found: null, counted: 1, changed: 0, deleted: 0 });
  });
});

describe('the serving role', () => {
  test('the serving role cannot bypass the policies', async () => {
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
    await refused(rows("INSERT INTO schema_migrations VALUES ('999-none')"));
  });

  test('only the serving role may run the functions that bypass the policies', async () => {
    const functions = await asOwner(
      `SELECT proname, proconfig, has_function_privilege('${roleOf(database.url)}', oid, 'EXECUTE')
                AS serving, proacl::text LIKE '%{=X%' OR proacl::text LIKE '%,=X%' AS everybody
         FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prosecdef ORDER BY proname`,
    );
    const path = 'search_path=pg_catalog, pg_temp';
    const planned = [
      ...['run_debits', 'find_keys', 'find_key_callers'],
      ...['find_calling_agents', 'find_agent_callers'],
    ];
    const ofPlans = [
      ...['enable_seqscan=off', 'enable_hashjoin=off', 'enable_mergejoin=off'],
      'plan_cache_mode=force_generic_plan',
    ];
    expect(functions).toEqual(
      [
        'booking_is_settled',
        'count_sign_in',
        'count_skill_use',
        'erase_account',
        'find_agent_callers',
        'find_calling_agents',
        'find_key_callers',
        'find_key_holders',
        'find_keys',
        'find_keys_beginning',
        'find_keys_by_prefix',
        'find_password_holder',
        'find_paying_sessions',
        'find_signed_in',
        'find_skills',
        'hold_credits',
        'hold_debit',
        'hold_tokens',
        'host_disks',
        'host_egress',
        'host_loads',
        'host_marks',
        'keep_reservations',
        'ledger_hold',
        'ledger_post',
        'ledger_post_all',
        'ledger_release',
        'ledger_release_all',
        'ledger_transfer',
        'pay_debt',
        'post_debit',
        'release_ended_holds',
        'remove_old_agents',
        'remove_old_audit',
        'remove_old_hourly_usage',
        'remove_old_payment_sessions',
        'remove_old_payments',
        'remove_old_tool_usage',
        'remove_old_usage',
        'remove_settled_holds',
        'reserve_gas',
        'roll_up_usage',
        'run_debits',
        'settle_abandoned',
        'settle_usage',
        'use_admin_link',
      ].map((proname) => ({
        proname,
        proconfig: [path, ...(planned.includes(proname) ? ofPlans : [])],
        serving: true,
        everybody: false,
      })),
    );
  });

  test('the serving role works under time limits', async () => {
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
