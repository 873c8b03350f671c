import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { Database } from '../../../src/platform/database/database.js';
import { migrate } from '../../../src/platform/database/migrate.js';

/** The TLS request of a PostgreSQL client: the length 8 and the request code. */
const TLS_PLEASE = '0000000804d2162f';

test(
  'a connection that requires TLS sends nothing without it, on any path to the database',
  { tags: 'attack' },
  async () => {
    const received: string[] = [];
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', (first) => {
        received.push(first.toString('hex'));
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
      expect(received).toEqual([TLS_PLEASE, TLS_PLEASE, TLS_PLEASE]);
    } finally {
      await database.close();
      server.close();
    }
  },
);
