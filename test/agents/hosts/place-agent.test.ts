import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { AgentGoneError } from '../../../src/agents/agents/agents.js';
import { AgentPorts } from '../../../src/agents/agents/agent-ports.js';
import { createAgent } from '../../../src/agents/lifecycle/create-agent.js';
import { UnavailableError } from '../../../src/lib/errors.js';
import { reportHost, type HostReport } from '../../../src/agents/hosts/hosts.js';
import { ringOf } from '../../../src/platform/secrets/key-ring.js';
import { SecretBox } from '../../../src/platform/secrets/secret-box.js';
import { queryRows } from '../../platform/database/catalog.js';
import { insertSql, ROWS } from '../../platform/database/rows.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

let database: TestDatabase;
const box = new SecretBox(ringOf(randomBytes(32)));

beforeAll(async () => {
  database = await testDatabase();
  for (const user of ['alice', 'bob']) await asOwner(insertSql('users', ROWS.users!(user, 1)));
});
afterEach(() => asOwner('DELETE FROM agents; DELETE FROM hosts'));
afterAll(() => database?.close());

const asOwner = (sql: string) => queryRows<Record<string, unknown>>(database.ownerUrl, sql);

const report = (id: string, given: Partial<HostReport> = {}) =>
  reportHost(database.db, {
    id,
    capacity: 2,
    ports: { first: 19_100, last: 19_199 },
    engineAvailable: true,
    ...given,
  });

const silence = (id: string) =>
  asOwner(`UPDATE hosts SET seen_at = seen_at - interval '46 seconds' WHERE id = '${id}'`);

const create = async (userId = 'alice', id: string = randomUUID(), limit = 100) => {
  const { agent } = await createAgent(database.db.asUser(userId), box, {
    id,
    userId,
    name: id,
    plan: 'solo',
    model: 'gpt-4',
    aiProvider: 'openai',
    config: {},
    limit: () => Promise.resolve(limit),
    requestId: 'test',
  });
  return agent;
};

const hostsOf = (agents: readonly { host: string }[]) => agents.map(({ host }) => host);

describe('placement of agents', () => {
  test('places an agent where most places are free, regardless of the owners', async () => {
    await report('one', { capacity: 3 });
    await report('two', { capacity: 2 });
    const agents = [];
    for (const user of ['alice', 'bob', 'alice', 'bob', 'alice']) agents.push(await create(user));
    expect(hostsOf(agents)).toEqual(['one', 'one', 'two', 'one', 'two']);
  });

  test('reuses a place only after the removal of its agent is complete', async () => {
    await report('one', { capacity: 1 });
    const { id } = await create();
    await asOwner(`UPDATE agents SET desired = 'deleted' WHERE id = '${id}'`);
    await expect(create()).rejects.toThrow(UnavailableError);
    await asOwner(`UPDATE agents SET deleted_at = now() WHERE id = '${id}'`);
    expect((await create()).host).toBe('one');
  });

  test('skips a silent host until its worker reports again', async () => {
    await report('one', { capacity: 10 });
    await report('two', { capacity: 2 });
    await silence('one');
    expect((await create()).host).toBe('two');
    await report('one', { capacity: 10 });
    expect((await create()).host).toBe('one');
  });

  test('skips a host whose Docker does not answer', async () => {
    await report('one', { capacity: 10, engineAvailable: false });
    await report('two', { capacity: 2 });
    expect((await create()).host).toBe('two');
  });

  test('uses the capacity that the worker last reported', async () => {
    await report('one', { capacity: 1 });
    await create();
    await report('one', { capacity: 2 });
    expect((await create()).host).toBe('one');
    await report('one', { capacity: 0 });
    await expect(create()).rejects.toThrow(UnavailableError);
  });
});

describe('full hosts', () => {
  test('refuses an agent without a free host, and stores nothing', async () => {
    await expect(create()).rejects.toThrow('before the worker of a Docker host has started');
    await report('one', { capacity: 0 });
    await expect(create()).rejects.toThrow('No Docker host has a free place for an agent now');
    const left = await asOwner(
      'SELECT id FROM agents UNION ALL SELECT id FROM operations UNION ALL SELECT agent_id FROM agent_secrets',
    );
    expect(left).toEqual([]);
  });

  test('finds an existing agent by its id when all hosts are full', async () => {
    await report('one', { capacity: 1 });
    const { id } = await create();
    expect((await create('alice', id)).id).toBe(id);
    await silence('one');
    expect((await create('alice', id)).id).toBe(id);
  });

  test("reports the owner's limit before the lack of places", async () => {
    await expect(create('alice', randomUUID(), 0)).rejects.toMatchObject({ status: 402 });
  });
});

test('admits exactly as many concurrent agents as there are free places', async () => {
  await report('one', { capacity: 2 });
  await report('two', { capacity: 1 });
  const users = ['alice', 'bob', 'alice', 'bob', 'alice', 'bob'];
  const outcomes = await Promise.allSettled(users.map((user) => create(user)));
  const made = outcomes.flatMap((outcome) =>
    outcome.status === 'fulfilled' ? [outcome.value.host] : [],
  );
  expect(made.sort()).toEqual(['one', 'one', 'two']);
  for (const outcome of outcomes) {
    if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(UnavailableError);
  }
});

describe('port reservation', () => {
  const ports = () => new AgentPorts(database.db);
  const refOf = ({ id, userId, host }: { id: string; userId: string; host: string }) => ({
    agentId: id,
    userId,
    host,
  });

  test("reserves a port from the range of the agent's host", async () => {
    await report('one', { capacity: 1, ports: { first: 19_100, last: 19_100 } });
    await report('two', { capacity: 1, ports: { first: 30_500, last: 30_501 } });
    const [onOne, onTwo] = [await create(), await create()];
    expect(hostsOf([onOne, onTwo])).toEqual(['one', 'two']);
    expect(await ports().reserve(refOf(onTwo), 0)).toBe(30_500);
    expect(await ports().reserve(refOf(onOne), 0)).toBe(19_100);
    expect(await ports().reserve(refOf(onTwo), 30_500)).toBe(30_501);
    await expect(ports().reserve(refOf(onOne), 19_100)).rejects.toThrow('on host one');
  });

  test('skips ports that are known to be in use', async () => {
    await report('one', { capacity: 1, ports: { first: 19_100, last: 19_110 } });
    const agent = await create();
    expect(await ports().reserve(refOf(agent), 0)).toBe(19_100);
    const taken = [
      { first: 19_000, last: 19_103 },
      { first: 19_104, last: 19_104 },
      { first: 19_106, last: 19_106 },
    ];
    expect(await ports().reserve(refOf(agent), 19_100, taken)).toBe(19_105);
  });

  test('replaces a reserved port that is known to be in use', async () => {
    await report('one', { capacity: 1, ports: { first: 19_100, last: 19_110 } });
    const agent = await create();
    expect(await ports().reserve(refOf(agent), 19_101)).toBe(19_102);
    const taken = [{ first: 19_101, last: 19_103 }];
    expect(await ports().reserve(refOf(agent), 19_100, taken)).toBe(19_104);
    expect(await ports().reserve(refOf(agent), 19_100, taken)).toBe(19_104);
  });

  test('reserves the same port on two hosts', async () => {
    await report('one', { capacity: 1 });
    await report('two', { capacity: 1 });
    const [onOne, onTwo] = [await create(), await create()];
    expect(await ports().reserve(refOf(onOne), 0)).toBe(19_100);
    expect(await ports().reserve(refOf(onTwo), 0)).toBe(19_100);
  });

  test('reserves no port for a deleted agent', async () => {
    await report('one');
    const agent = await create();
    await asOwner(`UPDATE agents SET deleted_at = now(), desired = 'deleted'`);
    await expect(ports().reserve(refOf(agent), 0)).rejects.toBeInstanceOf(AgentGoneError);
    expect(await asOwner('SELECT id FROM agents WHERE port IS NOT NULL')).toEqual([]);
  });

  test('reserves no port on an unknown host', async () => {
    await report('one');
    const agent = await create();
    await asOwner('DELETE FROM hosts');
    await expect(ports().reserve(refOf(agent), 0)).rejects.toMatchObject({ status: 404 });
  });
});

test('keeps a port when its late release belongs to an earlier operation', async () => {
  await report('one');
  const ports = new AgentPorts(database.db);
  const { id: agentId, userId, host } = await create();
  const agent = { agentId, userId, host };
  const port = await ports.reserve(agent, 0);
  const remember = (version: number) =>
    asOwner(`UPDATE agents SET watchdog = '{"version": ${version}}' WHERE id = '${agentId}'`);
  const portNow = async () =>
    (await asOwner(`SELECT port FROM agents WHERE id = '${agentId}'`))[0]?.port;
  await remember(3);
  await ports.release(agent, 2);
  expect(await portNow()).toBe(port);
  await ports.release(agent, 3);
  expect(await portNow()).toBeNull();
});
