import { afterAll, beforeAll, expect, test } from 'vitest';
import { reportHost } from '../../../src/agents/hosts/hosts.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';

const disk = { floor: 0, volume: Infinity };
let platform: TestPlatform;
let ada: TestUser;

beforeAll(async () => {
  platform = await testPlatform({
    workers: false,
    disk,
    env: { AGENT_HOST: 'here', AGENT_HOST_CAPACITY: '2' },
  });
  ada = await platform.signUp('network');
});
afterAll(() => platform?.close());

const hosts = async () => (await platform.backend(undefined, 'GET', '/api/hosts')).body;

const create = (name: string, key?: string) =>
  platform.backend(ada, 'POST', '/api/agents', {
    body: { name },
    headers: key === undefined ? {} : { 'idempotency-key': key },
  });

test('lists hosts with their agents', async () => {
  expect(await hosts()).toEqual([
    {
      id: 'here',
      status: 'ready',
      capacity: 2,
      agents: 0,
      free: 2,
      cordoned: false,
      seenAt: expect.stringMatching(/Z$/),
      engineId: (await platform.docker.info()).ID,
      url: null,
      network: 'guarded',
      networkReason: null,
      diskFree: expect.toSatisfy((bytes) => bytes > 0),
      userNamespaces: (await platform.docker.info()).SecurityOptions.includes('name=userns'),
    },
  ]);
  const made = await create('first');
  expect(await hosts()).toMatchObject([{ id: 'here', agents: 1, free: 1 }]);
  const detail = await platform.backend(ada, 'GET', `/api/agents/${made.body.id}`);
  expect(detail.body.host).toBe('here');
});

test('lists a silent host and a host without its Docker with that status', async () => {
  const other = { capacity: 50, ports: { first: 19_100, last: 19_199 } };
  await reportHost(platform.db, { ...other, id: 'mute', engineAvailable: true });
  await platform.asOwner(
    `UPDATE hosts SET seen_at = now() - interval '46 seconds' WHERE id = 'mute'`,
  );
  await reportHost(platform.db, { ...other, id: 'bare', engineAvailable: false });
  expect(await hosts()).toMatchObject([
    { id: 'bare', status: 'engine_unavailable', free: 50 },
    { id: 'here', status: 'ready' },
    { id: 'mute', status: 'silent', free: 50 },
  ]);
});

test('a host below its disk floor accepts no agent: creation answers 503, and /health has the figures', async () => {
  const health = async () => (await platform.backend(undefined, 'GET', '/health')).body.disk;
  expect(await health()).toEqual({
    total: expect.any(Number),
    free: expect.toSatisfy((bytes) => bytes > 0),
    low: false,
  });
  const { total } = await health();
  // The other hosts are unavailable, and this one has less free space than its floor.
  disk.floor = total;
  await platform.reportHost();
  expect(await hosts()).toMatchObject([{}, { id: 'here', status: 'disk_low', free: 1 }, {}]);
  const refused = await create('one more');
  expect([refused.status, refused.body.error]).toEqual([503, expect.stringContaining('of disk')]);
  const onWeb = await platform.web(ada, 'POST', '/api/agents/provision', {
    body: { name: 'more' },
  });
  expect(onWeb.status).toBe(503);
  disk.floor = 0;
  await platform.reportHost();
  expect(await hosts()).toMatchObject([{}, { id: 'here', status: 'ready' }, {}]);
});

test('creation answers 503 when all hosts are full, and a repeated request gets its first answer', async () => {
  const made = await create('second', 'the-second');
  expect(made.status).toBe(201);
  const refused = await create('third', 'the-third');
  expect(refused.status).toBe(503);
  expect(refused.body.error).toBe(
    'No Docker host has a free place for an agent now: each host is full, cordoned, silent, short of disk, without its engine or without a guard of its networks',
  );
  const onWeb = await platform.web(ada, 'POST', '/api/agents/provision', {
    body: { name: 'third' },
  });
  expect([onWeb.status, onWeb.body.error]).toEqual([503, refused.body.error]);
  const repeated = await create('second', 'the-second');
  expect([repeated.status, repeated.body.id]).toEqual([201, made.body.id]);
  expect((await platform.web(ada, 'GET', '/api/agents')).body.count).toBe(2);

  // A refused request does not use up its idempotency key.
  await reportHost(platform.db, {
    id: 'more',
    capacity: 1,
    ports: { first: 19_100, last: 19_199 },
    engineAvailable: true,
  });
  expect((await create('third', 'the-third')).status).toBe(201);
});

test("a host's name is bound to its engine by the id that Docker reports", async () => {
  const { ID: id }: { ID: string } = await platform.docker.info();
  const rows = await platform.db
    .asPlatform()
    .query(`SELECT engine_id FROM hosts WHERE id = 'here'`);
  expect(rows).toEqual([{ engine_id: id }]);
});
