import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { Database } from '../../../src/platform/database/database.js';
import { Quota } from '../../../src/ai/usage/quota.js';
import { startTcpProxy } from '../../support/tcp-proxy.js';
import { testDatabase } from '../../support/postgres.js';

const WAYS: readonly [string, (database: Database) => Promise<unknown>][] = [
  [
    'a function',
    (database) =>
      new Quota(database).reserve({
        callId: randomUUID(),
        userId: 'ada',
        plan: 'solo',
        tokens: 1,
      }),
  ],
  ['a single statement', (database) => database.asUser('ada').query('SELECT 1')],
  ['a transaction', (database) => database.asUser('ada').transaction((db) => db.query('SELECT 1'))],
];

test.each(WAYS)(
  'a database that falls silent during %s times out, and its connection is not used again',
  async (_way, ask) => {
    const database = await testDatabase();
    const url = new URL(database.url);
    const proxy = await startTcpProxy(`tcp://${url.host}`);
    url.host = new URL(proxy.host).host;
    const far = new Database(url.href, { maxConnections: 1, answerTimeoutMs: 1_000 });
    try {
      await ask(far);
      proxy.silence();
      await expect(ask(far)).rejects.toThrow();
      proxy.mend();
      await ask(far);
    } finally {
      await proxy.close();
      await far.close();
      await database.close();
    }
  },
);
