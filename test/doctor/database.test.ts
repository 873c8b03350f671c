import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../dev/ports.js';
import { examine, ok } from '../../src/doctor/check.js';
import { ExaminedDatabase } from '../../src/doctor/examined-database.js';
import { MIGRATIONS } from '../../src/platform/database/migrations/index.js';
import { queryRows } from '../platform/database/catalog.js';
import {
  emptyDatabase,
  holdPostgres,
  testDatabase,
  type TestDatabase,
} from '../support/postgres.js';

beforeAll(holdPostgres);

let database: TestDatabase;
beforeEach(async () => {
  database = await testDatabase();
});
afterEach(() => database.close());

/** Examines a database, and reads a table as another check would. */
async function findingsOf(url: string, checkMs?: number): Promise<string[]> {
  const env = { DATABASE_URL: url };
  const examined = new ExaminedDatabase(env);
  onTestFinished(() => examined.close());
  const reads = examined.checkOf('reads', async (db) => {
    await db.asPlatform().query('SELECT id FROM users');
    return [ok('Tables are readable.')];
  });
  const findings = await examine([examined.check, reads], env, checkMs);
  return findings.map(({ check, status, text }) => `${status} ${check}: ${text}`);
}

const owner = (sql: string) => queryRows(database.ownerUrl, sql);

test('accepts the serving role and the schema of this release', async () => {
  const { host } = new URL(database.url);
  expect(await findingsOf(database.url)).toEqual([
    `ok database: PostgreSQL answers at ${host}, and the role keeps tenants apart.`,
    'ok database: The schema is of this release.',
    'ok reads: Tables are readable.',
  ]);
});

test('names an empty schema, and reads no tables', async () => {
  const empty = await emptyDatabase();
  onTestFinished(() => empty.close());
  expect(await findingsOf(empty.url)).toEqual([
    expect.stringContaining('ok database: PostgreSQL answers'),
    expect.stringMatching(/^failure database: .* has no schema of this release: run dist\/scripts/),
    'warning reads: Not checked: the schema is not of this release.',
  ]);
});

test('names a missing migration', async () => {
  const last = MIGRATIONS.at(-1)?.name;
  await owner(`DELETE FROM schema_migrations WHERE name = '${last}'`);
  expect((await findingsOf(database.url))[1]).toContain(
    `failure database: The database lacks the migration ${last}: run dist/scripts/migrate.js`,
  );
});

test('warns of a newer schema, and names one that breaks older releases', async () => {
  await owner("INSERT INTO schema_migrations VALUES ('998-new', false)");
  expect((await findingsOf(database.url))[1]).toMatch(/^warning .*newer release \(998-new\)/);
  await owner("INSERT INTO schema_migrations VALUES ('999-other', true)");
  expect((await findingsOf(database.url))[1]).toContain(
    'failure database: The database has the migration 999-other of a newer release',
  );
});

test('names the role of the owner, and still checks the schema', async () => {
  const [role, schema] = await findingsOf(database.ownerUrl);
  expect(role).toMatch(/^failure database: The role "\w+" of DATABASE_URL owns the tables/);
  expect(schema).toBe('ok database: The schema is of this release.');
});

test('names a superuser', async () => {
  const [role] = await findingsOf(await database.roleWith('SUPERUSER'));
  expect(role).toMatch(/^failure database: The role "\w+" of DATABASE_URL is a superuser/);
});

test('reports an unresponsive database once', async () => {
  const port = await freePort();
  expect(await findingsOf(`postgres://nobody@127.0.0.1:${port}/nothing`)).toEqual([
    expect.stringContaining(
      `failure database: PostgreSQL does not answer at 127.0.0.1:${port} (connect ECONNREFUSED`,
    ),
    'warning reads: Not checked: the database does not answer.',
  ]);
});

test('names a refused password without the password', async () => {
  const url = new URL(database.url);
  url.password = 'no-such-password';
  const [refused] = await findingsOf(url.href);
  expect(refused).toMatch(/^failure database: PostgreSQL .* \(.*\): .* DATABASE_URL\.$/);
  expect(refused).not.toContain('no-such-password');
});

test('ends while a database accepts connections and never answers', async () => {
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  onTestFinished(() => void silent.close());
  const { port } = silent.address() as AddressInfo; // never a string for a TCP listener
  expect(await findingsOf(`postgres://nobody@127.0.0.1:${port}/nothing`, 200)).toEqual([
    expect.stringContaining('failure database: No result within 0.2 s'),
    expect.stringContaining('failure reads: No result within 0.2 s'),
  ]);
});
