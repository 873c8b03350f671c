import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { Database } from '../../src/database/database.js';
import { Quota } from '../../src/usage/quota.js';
import { startTcpProxy } from '../support/tcp-proxy.js';
import { testDatabase } from '../support/postgres.js';

test('a database that falls silent holds up nobody for ever, and none of its connections is used again', async () => {
  const database = await testDatabase();
  const url = new URL(database.url);
  const proxy = await startTcpProxy(`tcp://${url.host}`);
  url.host = new URL(proxy.host).host;
  const far = new Database(url.href, { maxConnections: 1, answerTimeoutMs: 1_000 });
  try {
    const quota = new Quota(far);
    const reserve = () =>
      quota.reserve({ callId: randomUUID(), userId: 'ada', plan: 'solo', tokens: 1 });
    await reserve();
    proxy.silence();
    await expect(reserve()).rejects.toThrow();
    proxy.mend();
    await reserve();
  } finally {
    await proxy.close();
    await far.close();
    await database.close();
  }
}, 60_000);
