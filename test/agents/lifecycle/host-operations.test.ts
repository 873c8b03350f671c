import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAgent } from '../../../src/agents/lifecycle/create-agent.js';
import { reportHost } from '../../../src/agents/hosts/hosts.js';
import { HostOperations } from '../../../src/agents/lifecycle/host-operations.js';
import { UnavailableError } from '../../../src/lib/errors.js';
import { queryRows } from '../../platform/database/catalog.js';
import { insertSql, ROWS } from '../../platform/database/rows.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { testSecrets } from '../../support/secrets.js';

const AGENTS = 25;

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
  await queryRows(database.ownerUrl, insertSql('users', ROWS.users!('alice', 1)));
  const ports = { first: 19_100, last: 19_199 };
  const report = { id: 'one', capacity: AGENTS, ports, engineAvailable: true };
  await reportHost(database.db, report);
});
afterAll(() => database?.close());

async function create(): Promise<string> {
  const id = randomUUID();
  await createAgent(database.db.asUser('alice'), testSecrets(), {
    id,
    userId: 'alice',
    name: id,
    plan: 'solo',
    model: 'gpt-4',
    aiProvider: 'openai',
    config: {},
    limit: () => Promise.resolve(AGENTS),
    requestId: 'test',
  });
  return id;
}

test('a drain during an outage reports every agent that it does not stop', async () => {
  const agents: string[] = [];
  while (agents.length < AGENTS) agents.push(await create());
  let tries = 0;
  const operations = new HostOperations(database.db, {
    run() {
      tries++;
      return Promise.reject(new UnavailableError('Temporal is not available: retry later'));
    },
  });
  const drained = await operations.drain({ actor: 'operator', requestId: 'test' }, 'one');
  expect(tries).toBeLessThan(AGENTS);
  expect(drained).toMatchObject({ began: [], remaining: AGENTS });
  expect(drained.refused.map(({ agentId }) => agentId).sort()).toEqual(agents.sort());
  expect(new Set(drained.refused.map(({ error }) => error))).toEqual(
    new Set(['Temporal is not available: retry later']),
  );
});
