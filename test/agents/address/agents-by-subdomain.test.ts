import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { AgentsBySubdomain } from '../../../src/agents/address/agents-by-subdomain.js';
import type { AgentRow } from '../../../src/platform/database/models.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

const USER = 'operator';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database?.close());

async function agentWith(values: Partial<AgentRow>): Promise<AgentRow> {
  const id = randomUUID();
  const names = { id, userId: USER, name: id, subdomain: id, host: 'here' };
  const kind = { plan: 'network', model: 'gpt-4', aiProvider: 'openai' } as const;
  const row = { ...names, ...kind, status: 'active', port: 19_100, ...values } as const;
  return database.db.asUser(USER).transaction((db) => db.Agent.create(row));
}

test('finds a running agent of any tenant with its host and port', async () => {
  const { id, subdomain } = await agentWith({ port: 19_101 });
  expect(await new AgentsBySubdomain(database.db).find(subdomain)).toEqual({
    agentId: id,
    userId: USER,
    host: 'here',
    port: 19_101,
  });
});

test.each([
  ['stopped', { status: 'stopped', port: 19_102 }],
  ['about to stop', { desired: 'stopped', port: 19_103 }],
  ['without a port', { port: null }],
] as const)('gives no port of an agent that is %s', async (_case, values) => {
  const { subdomain } = await agentWith(values);
  expect(await new AgentsBySubdomain(database.db).find(subdomain)).toMatchObject({ port: null });
});

test('finds neither removed agents nor unknown subdomains', async () => {
  const agents = new AgentsBySubdomain(database.db);
  const leaving = await agentWith({ desired: 'deleted', port: 19_104 });
  const gone = await agentWith({ desired: 'deleted', deletedAt: new Date(), port: null });
  for (const subdomain of [leaving.subdomain, gone.subdomain, 'nobody']) {
    expect(await agents.find(subdomain)).toBeUndefined();
  }
});

test('queries the database once for concurrent requests, and again after a failure', async () => {
  let asked = 0;
  const failing = {
    query: () => {
      asked++;
      return Promise.reject(new Error('the database is gone'));
    },
  };
  // Only the part that the lookup uses.
  const agents = new AgentsBySubdomain({ asPlatform: () => failing } as never);
  const both = await Promise.allSettled([agents.find('a'), agents.find('a')]);
  expect([asked, both.map(({ status }) => status)]).toEqual([1, ['rejected', 'rejected']]);
  await expect(agents.find('a')).rejects.toThrow('the database is gone');
  expect(asked).toBe(2);
});
