import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { Database } from '../../../src/platform/database/database.js';
import { migrate } from '../../../src/platform/database/migrate.js';
import { SettingsError } from '../../../src/platform/environment/settings-error.js';
import { loadSettings } from '../../../src/settings.js';

/** The TLS request of a PostgreSQL client: the length 8 and the request code. */
const TLS_PLEASE = '0000000804d2162f';

test(
  'a connection that requires TLS sends nothing without it, on any path to the database',
  { tags: 'attack' },
  async () => {
    const heard: string[] = [];
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', (first) => {
        heard.push(first.toString('hex'));
        socket.end('N'); // refuses TLS
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const url = `postgres://user:secret@127.0.0.1:${port}/db?sslmode=verify-full`;
    const database = new Database(url, { maxConnections: 2 });
    try {
      const tenant = database.asUser('ada');
      await expect(tenant.transaction((db) => db.User.findAll())).rejects.toThrow();
      await expect(tenant.query('SELECT 1')).rejects.toThrow();
      await expect(migrate(url, 'user')).rejects.toThrow();
      expect(heard).toEqual([TLS_PLEASE, TLS_PLEASE, TLS_PLEASE]);
    } finally {
      await database.close();
      server.close();
    }
  },
);

const PRODUCTION = {
  NODE_ENV: 'production',
  DATABASE_URL: 'postgres://u:p@localhost/db',
  ENCRYPTION_KEY: Buffer.alloc(32, 7).toString('base64'),
  INTERNAL_API_KEY: 'k'.repeat(40),
  AGENT_RUNTIME_IMAGE: `image@sha256:${'0'.repeat(64)}`,
  AGENT_EGRESS_IMAGE: `sha256:${'0'.repeat(64)}`,
};

function problemsOf(env: Readonly<Record<string, string | undefined>>): string {
  try {
    loadSettings({ ...PRODUCTION, ...env });
    return '';
  } catch (error) {
    if (error instanceof SettingsError) return error.problems.join();
    throw error;
  }
}

test.each([
  ['DATABASE_URL', { DATABASE_URL: 'postgres://u:p@10.0.0.5/db' }],
  ['DATABASE_URL', { DATABASE_URL: 'postgres://u:p@db.internal:5432/db?sslmode=prefer' }],
  ['DATABASE_URL', { DATABASE_URL: 'postgres://u:p@localhost.example/db' }],
  ['DATABASE_URL', { DATABASE_URL: 'postgres://u:127.0.0.1@db/db' }],
  ['TEMPORAL_ADDRESS', { TEMPORAL_ADDRESS: 'temporal:7233' }],
  ['TEMPORAL_ADDRESS', { TEMPORAL_ADDRESS: '10.0.0.6:7233' }],
])('a %s that leaves the machine unencrypted is refused in production: %j', (name, env) => {
  expect(problemsOf(env)).toContain(`${name} `);
});

test.each([
  {},
  { DATABASE_URL: 'postgres://u:p@127.0.0.1:5432/db' },
  { DATABASE_URL: 'postgres://u:p@[::1]/db' },
  { DATABASE_URL: 'postgres://u:p@localhost/db?host=/var/run/postgresql' },
  { DATABASE_URL: 'postgres://u:p@db/db?sslmode=verify-full' },
  { DATABASE_URL: 'postgres://u:p@db/db?sslmode=disable' },
  { TEMPORAL_ADDRESS: 'localhost:7233' },
  { TEMPORAL_ADDRESS: 'temporal:7233', TEMPORAL_API_KEY: 'key' },
  { TEMPORAL_ADDRESS: 'temporal:7233', TEMPORAL_TLS: 'true' },
  { TEMPORAL_ADDRESS: 'temporal:7233', TEMPORAL_TLS: 'false' },
])('an address that is local, encrypted, or explicitly unencrypted is accepted: %j', (env) => {
  expect(problemsOf(env)).toBe('');
});
