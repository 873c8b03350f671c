import pg from 'pg';

/** Key of the advisory lock for creating roles and databases. */
const ROLES_LOCK = 4_106_718_311;

const CONNECT_TIMEOUT_MS = 5_000;
const STATEMENT_TIMEOUT_MS = 60_000;

/** A database, the role that owns and migrates it, and the role that serves requests. */
export interface DatabaseAndRoles {
  readonly database: string;
  readonly ownerRole: string;
  readonly ownerPassword: string;
  readonly servingRole: string;
  readonly servingPassword: string;
}

/**
 * Creates the roles and the database if missing, and sets the roles' passwords and attributes. May run in
 * several processes concurrently.
 * @returns the addresses for `DATABASE_OWNER_URL` and `DATABASE_URL`.
 */
export async function ensureRolesAndDatabase(
  superuserUrl: string,
  wanted: DatabaseAndRoles,
): Promise<{ ownerUrl: string; servingUrl: string }> {
  await withSuperuser(superuserUrl, async (client) => {
    await client.query('SELECT pg_advisory_lock($1)', [ROLES_LOCK]);
    await ensureRole(client, wanted.ownerRole, wanted.ownerPassword);
    await ensureRole(client, wanted.servingRole, wanted.servingPassword);

    const database = client.escapeIdentifier(wanted.database);
    const found = await client.query('SELECT FROM pg_database WHERE datname = $1', [
      wanted.database,
    ]);
    if (found.rowCount === 0) {
      await client.query(
        `CREATE DATABASE ${database} OWNER ${client.escapeIdentifier(wanted.ownerRole)}`,
      );
    }
    await client.query(
      `REVOKE ALL ON DATABASE ${database} FROM PUBLIC;
       GRANT CONNECT ON DATABASE ${database} TO ${client.escapeIdentifier(wanted.servingRole)}`,
    );
  });
  return {
    ownerUrl: databaseUrl(superuserUrl, wanted.database, wanted.ownerRole, wanted.ownerPassword),
    servingUrl: databaseUrl(
      superuserUrl,
      wanted.database,
      wanted.servingRole,
      wanted.servingPassword,
    ),
  };
}

/** Returns the address of a database on the same server, for one role. */
export function databaseUrl(
  serverUrl: string,
  database: string,
  role: string,
  password: string,
): string {
  const url = new URL(serverUrl);
  url.username = encodeURIComponent(role);
  url.password = encodeURIComponent(password);
  url.pathname = `/${encodeURIComponent(database)}`;
  return url.href;
}

/** Returns the role in a database address; for `DATABASE_URL`, the serving role. */
export function roleOf(url: string): string {
  return decodeURIComponent(new URL(url).username);
}

/** Runs `work` on a connection of its own, whose close releases all its locks. */
export async function withSuperuser<T>(
  superuserUrl: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({
    connectionString: superuserUrl,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
  });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

async function ensureRole(client: pg.Client, role: string, password: string): Promise<void> {
  const name = client.escapeIdentifier(role);
  const found = await client.query('SELECT FROM pg_roles WHERE rolname = $1', [role]);
  await client.query(
    `${found.rowCount === 0 ? 'CREATE' : 'ALTER'} ROLE ${name} LOGIN
       NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE PASSWORD ${client.escapeLiteral(password)}`,
  );
}
