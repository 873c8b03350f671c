import { randomBytes, randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { DockerHost } from '../../../src/docker/containers/docker-host.js';
import type { AgentRow } from '../../../src/platform/database/models.js';
import { ConflictError } from '../../../src/lib/errors.js';
import { LocalHost } from '../../../src/agents/hosts/local-host.js';
import { NO_EXCEPTIONS } from '../../../src/platform/outbound/reachable.js';
import { ringOf } from '../../../src/platform/secrets/key-ring.js';
import { SecretBox } from '../../../src/platform/secrets/secret-box.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

const USER = 'operator';
const never = new AbortController().signal;

let database: TestDatabase;
let neighbour: Server;
/** Requests received by the neighbour, which listens on the agent's port. */
let received = 0;

beforeAll(async () => {
  database = await testDatabase();
  neighbour = createServer((_, response) => {
    received++;
    response.end();
  });
  await new Promise<void>((resolve) => neighbour.listen(0, '127.0.0.1', resolve));
});
afterAll(async () => {
  neighbour?.close();
  await database?.close();
});

function hostWith(containers: readonly { readonly agentId: string; readonly userId: string }[]) {
  const list = () => Promise.resolve(containers.map((each) => ({ ...each, status: 'exited' })));
  return new LocalHost({
    id: 'here',
    database: database.db,
    image: 'image',
    allow: NO_EXCEPTIONS,
    secrets: new SecretBox(ringOf(randomBytes(32))),
    helper: () => Promise.reject(new TypeError('not used by this test')),
    // Only the parts that LocalHost uses.
    docker: { containers: { list } } as unknown as DockerHost,
  });
}

describe('stale agent port', { tags: 'attack' }, () => {
  async function agentOf(values: Partial<AgentRow>) {
    const agentId = randomUUID();
    // A TCP address is never a string.
    const { port } = neighbour.address() as AddressInfo;
    const names = { id: agentId, userId: USER, name: agentId, subdomain: agentId, host: 'here' };
    const kind = { plan: 'network', model: 'gpt-4', aiProvider: 'openai' } as const;
    await database.db
      .asUser(USER)
      .transaction((db) => db.Agent.create({ ...names, ...kind, port, ...values }));
    return { agentId, userId: USER, host: 'here' };
  }

  test.each([
    ['is on another host', { status: 'active', host: 'elsewhere' }],
    ['does not run', { status: 'stopped' }],
    ['has no port', { status: 'active', port: null }],
  ] as const)(
    'sends no request to an agent that %s, since another program may own its port',
    async (_case, values) => {
      await database.db.asPlatform().query('UPDATE agents SET port = NULL');
      const agent = await agentOf(values);
      const question = { message: 'a secret', conversation: 'c' };
      const asking = hostWith([]).ask(agent, question, never).next();
      await expect(asking).rejects.toThrow(ConflictError);
      expect(received).toBe(0);
    },
  );
});

test("lists only a tenant's own containers, page by page", async () => {
  const all = ['a1', 'b2', 'a3', 'a4'].map((agentId) => ({ agentId, userId: agentId.slice(0, 1) }));
  const host = hostWith(all);
  const seen = async (given: { userId?: string; after?: string; limit: number }) =>
    (await host.instances({ stats: false, ...given })).map(({ agentId }) => agentId);
  expect(await seen({ userId: 'a', limit: 2 })).toEqual(['a1', 'a3']);
  expect(await seen({ userId: 'a', after: 'a3', limit: 2 })).toEqual(['a4']);
  expect(await seen({ limit: 9 })).toEqual(['a1', 'a3', 'a4', 'b2']);
});
