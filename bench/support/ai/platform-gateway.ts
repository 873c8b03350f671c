import { randomUUID } from 'node:crypto';
import { createApiKey } from '../../../src/accounts/accounts/api-keys.js';
import { grantPlan } from '../../../src/accounts/accounts/subscriptions.js';
import { Database } from '../../../src/platform/database/database.js';
import { poll } from '../../../dev/poll.js';
import { Client } from '../client.js';
import type { BenchPlatform } from '../platform.js';
import type { Gateway } from '../../against/gateway.js';

/** Users, each with a key, a plan and its quota. */
const USERS = 10;
/** A plan with a monthly token quota. */
const PLAN = 'label';
/** Milliseconds to wait for the last records, which may be late on a busy machine. */
const WRITTEN_TIMEOUT_MS = 30_000;

/** Returns this product as a gateway for users' programs. */
export async function platformGateway(platform: BenchPlatform): Promise<Gateway> {
  const database = new Database(platform.databaseUrl, { maxConnections: 1 });
  const web = new Client(platform.webUrl, {});
  try {
    const keys: string[] = [];
    for (let number = 0; number < USERS; number++) {
      const account = { email: `bench-${number}@example.org`, password: randomUUID() };
      const { id } = await web.json<{ id: string }>('POST', '/api/register', account);
      await grantPlan(database, id, PLAN, { actor: 'operator', requestId: 'bench' });
      const owner = { userId: id, requestId: randomUUID() };
      const { key } = await createApiKey(database, owner, {
        name: 'benchmark',
        site: 'here',
      });
      keys.push(key);
    }
    return {
      name: 'this product',
      url: `${platform.backendUrl}/v1/chat/completions`,
      model: 'openai/gpt-6-luna',
      keys,
      headers: {},
      pids: { api: platform.pidOf('api'), PostgreSQL: platform.pidOf('postgres') },
    };
  } finally {
    web.close();
    await database.close();
  }
}

/**
 * Waits until the database has a usage record for each answered call.
 *
 * @throws Error if the number of records differs.
 */
export async function requireUsageOf(platform: BenchPlatform, answered: number): Promise<void> {
  const database = new Database(platform.databaseUrl, { maxConnections: 1 });
  const count = async () => {
    const sql = 'SELECT count(*)::integer AS calls FROM usage_logs';
    const [row] = await database.asPlatform().query<{ calls: number }>(sql);
    return row?.calls ?? 0;
  };
  try {
    const all = async () => ((await count()) >= answered ? true : undefined);
    await poll(all, { timeoutMs: WRITTEN_TIMEOUT_MS, everyMs: 250 });
    const rows = await count();
    if (rows !== answered) {
      throw new Error(`${answered} calls were answered, but ${rows} usage records exist.`);
    }
    console.log(`\n${answered} calls answered by this product, ${rows} usage records: the same.`);
  } finally {
    await database.close();
  }
}
