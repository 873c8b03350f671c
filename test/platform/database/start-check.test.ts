import pg from 'pg';
import { pino } from 'pino';
import { afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { Database } from '../../../src/platform/database/database.js';
import { migrate } from '../../../src/platform/database/migrate.js';
import { MIGRATIONS } from '../../../src/platform/database/migrations/index.js';
import { roleOf } from '../../../src/platform/database/roles.js';
import { requireFitDatabase } from '../../../src/platform/database/start-check.js';
import { freePort } from '../../../dev/ports.js';
import { keptLog } from '../../support/platform-environment.js';
import {
  emptyDatabase,
  holdPostgres,
  testDatabase,
  type TestDatabase,
} from '../../support/postgres.js';
import { queryRows } from './catalog.js';

const SILENT = pino({ level: 'silent' });

beforeAll(holdPostgres);

let database: TestDatabase;
beforeEach(async () => {
  database = await testDatabase();
});
afterEach(() => database.close());

const never = () => new AbortController().signal;

/** Checks the database as the role of an address. */
async function check(url: string, log = SILENT): Promise<boolean> {
  const db = new Database(url, { maxConnections: 1 });
  onTestFinished(() => db.close());
  return requireFitDatabase(db, log, never());
}

const owner = (sql: string) => queryRows(database.ownerUrl, sql);

test('accepts the serving role and the schema of this release', async () => {
  await expect(check(database.url)).resolves.toBe(true);
});

test('refuses an empty database', async () => {
  const empty = await emptyDatabase();
  onTestFinished(() => empty.close());
  await expect(check(empty.url)).rejects.toThrow(
    'The database has no schema of this release: run dist/scripts/migrate.js with DATABASE_OWNER_URL',
  );
});

test('names a missing migration, and accepts the database once it is migrated', async () => {
  const last = MIGRATIONS.at(-1)?.name;
  await owner(`DELETE FROM schema_migrations WHERE name = '${last}'`);
  await expect(check(database.url)).rejects.toThrow(
    `lacks the migration ${last}: run dist/scripts`,
  );
});

test('warns of a newer schema, and refuses one that breaks older releases', async () => {
  const { log, lines } = keptLog();
  await owner("INSERT INTO schema_migrations VALUES ('998-new', false)");
  await check(database.url, log);
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ level: 40, newer: ['998-new'] }]);
  await owner("INSERT INTO schema_migrations VALUES ('999-other', true)");
  await expect(check(database.url)).rejects.toThrow(
    'The database has the migration 999-other of a newer release',
  );
});

test('refuses the owner of the tables', async () => {
  await expect(check(database.ownerUrl)).rejects.toThrow(
    /role "\w+" of DATABASE_URL owns the tables/,
  );
});

test.each([
  ['SUPERUSER', 'is a superuser'],
  ['BYPASSRLS', 'bypasses row-level security'],
] as const)('refuses a role with %s', async (attribute, fault) => {
  await expect(check(await database.roleWith(attribute))).rejects.toThrow(fault);
});

test.each([
  ['SUPERUSER', 'is a superuser or a member of one'],
  ['BYPASSRLS', 'is a member of a role that does'],
] as const)('refuses a member of a role with %s', async (attribute, fault) => {
  const role = new URL(await database.roleWith(attribute)).username;
  await expect(check(await database.roleWith(`IN ROLE ${role}`))).rejects.toThrow(fault);
});

test('waits for a database that does not answer', async () => {
  const { log, lines } = keptLog();
  const port = await freePort();
  const db = new Database(`postgres://nobody@127.0.0.1:${port}/nothing`, { maxConnections: 1 });
  onTestFinished(() => db.close());
  const stop = new AbortController();
  const checking = requireFitDatabase(db, log, stop.signal);
  await expect.poll(() => lines.length).toBeGreaterThan(0);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    msg: 'the database does not answer; retrying',
  });
  stop.abort();
  await expect(checking).resolves.toBe(false);
});

/** Runs `work` while a transaction of the owner is open. */
async function during(statement: string, work: (commit: () => Promise<unknown>) => Promise<void>) {
  const client = new pg.Client(database.ownerUrl);
  await client.connect();
  try {
    await client.query(`BEGIN; ${statement}`);
    await work(() => client.query('COMMIT'));
  } finally {
    await client.end();
  }
}

test('waits for a migration that holds the table', () =>
  during('LOCK TABLE schema_migrations IN ACCESS EXCLUSIVE MODE', async (commit) => {
    const { log, lines } = keptLog();
    const checking = check(database.url, log);
    await expect.poll(() => lines.length).toBeGreaterThan(0);
    await commit();
    await expect(checking).resolves.toBe(true);
  }));

test('a migration with nothing to do locks no table that processes read', () =>
  during('SELECT name FROM schema_migrations', async () => {
    await expect(migrate(database.ownerUrl, roleOf(database.url))).resolves.toEqual([]);
  }));
