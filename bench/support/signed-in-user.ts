import { randomUUID } from 'node:crypto';
import { Database } from '../../src/platform/database/database.js';
import { agentRow } from './agent-row.js';
import { Client } from './client.js';
import type { BenchPlatform } from './platform.js';

/**
 * Registers a user with this many stopped agents, whose ports no other benchmark of the platform uses, and signs in.
 *
 * @returns the cookie.
 */
export async function signInWithAgents(
  platform: BenchPlatform,
  agents: number,
  firstPort = 40_000,
): Promise<string> {
  const web = new Client(platform.webUrl, {});
  const email = `bench-${randomUUID()}@example.org`;
  const password = randomUUID();
  const { id } = await web.json<{ id: string }>('POST', '/api/register', { email, password });
  const { headers } = await web.send('POST', '/api/auth/login', { email, password });
  web.close();

  const database = new Database(platform.databaseUrl, { maxConnections: 1 });
  await database
    .asUser(id)
    .transaction((db) =>
      db.Agent.bulkCreate(
        Array.from({ length: agents }, (_, index) => agentOf(id, firstPort + index)),
      ),
    );
  await database.close();
  return headers['set-cookie']?.[0]?.split(';')[0] ?? '';
}

const agentOf = (userId: string, port: number) => ({
  ...agentRow(userId, port),
  desired: 'stopped' as const,
  status: 'stopped' as const,
});
