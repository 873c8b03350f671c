import pg from 'pg';
import type { Secrets } from './secrets.js';

/** The addresses of the embedded database for its two roles. */
export interface DatabaseUrls {
  /** Owns the schema and migrates it. */
  readonly ownerUrl: string;
  /** Serves requests, under row-level security. */
  readonly servingUrl: string;
}

const DATABASE = 'agent_platform';
const OWNER = 'agent_platform_owner';
const SERVING = 'agent_platform_api';

/** Makes the two roles and the database on a PostgreSQL of our own, where they are missing. */
export async function prepareDatabase(
  superuserUrl: string,
  secrets: Secrets,
): Promise<DatabaseUrls> {
  const client = new pg.Client({ connectionString: superuserUrl, connectionTimeoutMillis: 5_000 });
  await client.connect();
  try {
    for (const [role, password] of [
      [OWNER, secrets.ownerPassword],
      [SERVING, secrets.servingPassword],
    ] as const) {
      const found = await client.query('select 1 from pg_roles where rolname = $1', [role]);
      const verb = found.rowCount === 0 ? 'create' : 'alter';
      const name = client.escapeIdentifier(role);
      await client.query(`${verb} role ${name} login password ${client.escapeLiteral(password)}`);
    }
    const found = await client.query('select 1 from pg_database where datname = $1', [DATABASE]);
    if (found.rowCount === 0) {
      await client.query(`create database ${DATABASE} owner ${OWNER}`);
      await client.query(`revoke all on database ${DATABASE} from public`);
      await client.query(`grant connect on database ${DATABASE} to ${SERVING}`);
    }
  } finally {
    await client.end();
  }
  const url = (role: string, password: string) => {
    const address = new URL(superuserUrl);
    address.username = role;
    address.password = password;
    address.pathname = DATABASE;
    return address.href;
  };
  return {
    ownerUrl: url(OWNER, secrets.ownerPassword),
    servingUrl: url(SERVING, secrets.servingPassword),
  };
}
