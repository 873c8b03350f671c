import { afterAll, beforeAll, expect, test } from 'vitest';
import { containerName, LABEL } from '../../../src/docker/containers/container-spec.js';
import { pagesOf } from '../../support/http.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';

let platform: TestPlatform;
let ada: TestUser;
let agentId: string;

beforeAll(async () => {
  platform = await testPlatform();
  ada = await platform.signUp('network');
  agentId = await platform.runningAgent(ada);
});
afterAll(() => platform?.close());

const USAGE = {
  cpuPercent: expect.any(Number),
  memoryBytes: expect.any(Number),
  memoryLimitBytes: 3 * 1024 ** 3,
  networkReceivedBytes: expect.any(Number),
  networkSentBytes: expect.any(Number),
  processes: expect.any(Number),
  readAt: expect.stringMatching(/Z$/),
};

const get = (path: string) => platform.backend(ada, 'GET', path);

test('lists running instances, and measures them on request', async () => {
  const container = await platform.containers.inspect(agentId);
  const listed = await get('/api/runtime/instances');
  expect(listed.body).toEqual({
    count: 1,
    instances: [
      {
        id: agentId,
        containerId: container?.id,
        userId: ada.id,
        status: 'running',
        image: platform.settings.agents.runtimeImage,
        createdAt: expect.stringMatching(/Z$/),
        stats: null,
      },
    ],
    unreachable: [],
  });
  const measured = await get('/api/runtime/instances?stats=true');
  expect(measured.body.instances[0].stats).toEqual(USAGE);
  expect((await get(`/api/runtime/instances/${agentId}/stats`)).body).toEqual({
    id: agentId,
    running: true,
    stats: USAGE,
  });
  expect((await get(`/api/agents/${agentId}/stats`)).body).toEqual({
    id: agentId,
    status: 'active',
    container: USAGE,
  });
  const { body } = await platform.web(ada, 'GET', `/api/instance/${ada.id}/stats`);
  expect(body).toMatchObject({ userId: ada.id, running: 1, status: 'ok' });
  expect(body.memoryBytes).toBeGreaterThan(1_000_000);
  expect(body.agents[0]).toMatchObject({ id: agentId, status: 'running' });
});

test('lists running instances in pages by id, each once', async () => {
  const ids = [agentId, await platform.runningAgent(ada), await platform.runningAgent(ada)].sort();
  const found: string[] = [];
  for await (const { body } of pagesOf(get, '/api/runtime/instances?limit=1')) {
    expect(body.count).toBe(1);
    found.push(body.instances[0].id);
  }
  expect(found).toEqual(ids);
  const { headers } = await get('/api/runtime/instances?limit=3');
  expect(headers.get('link')).toBeNull();
});

test('the version of new agents is the one that their image is labelled with', async () => {
  const { runtimeImage: image = '' } = platform.settings.agents;
  const { Config: config } = await platform.docker.getImage(image).inspect();
  expect((await get('/api/runtime/version')).body).toEqual({
    version: config.Labels?.['org.opencontainers.image.version'],
    image,
  });
  expect((await get(`/api/agents/${agentId}`)).body.openclawVersion).toBe(
    config.Labels?.['org.opencontainers.image.version'],
  );
});

test("the sums of a user's instance cover agents beyond a page of containers", async () => {
  const stats = `/api/instance/${ada.id}/stats`;
  const { body: before } = await platform.web(ada, 'GET', stats);
  expect(before.running).toBe(3);
  const { Config: config } = await platform.docker.getContainer(containerName(agentId)).inspect();
  // Before all others in the order of ids, so that the running ones are on the second page.
  const ids = Array.from({ length: 200 }, (_, each) => `0000-${String(each).padStart(3, '0')}`);
  const waiting = ids.toReversed();
  const make = async () => {
    for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
      const labels = { ...config.Labels, [LABEL.agent]: id };
      const name = containerName(id);
      await platform.docker.createContainer({ name, Image: config.Image, Labels: labels });
    }
  };
  await Promise.all(Array.from({ length: 8 }, make));
  expect((await get('/api/runtime/instances?limit=200')).headers.get('link')).not.toBeNull();
  const { body: after } = await platform.web(ada, 'GET', stats);
  expect(after).toMatchObject({ running: 3, memoryBytes: expect.any(Number) });
  expect(after.memoryBytes).toBeGreaterThan(3_000_000);
  const ofPages: number[] = [];
  for await (const { body } of pagesOf(
    (path) => platform.web(ada, 'GET', path),
    `${stats}?limit=1`,
  )) {
    expect([body.running, body.agents.length]).toEqual([3, 1]);
    ofPages.push(body.agents[0].stats.memoryBytes);
  }
  expect(ofPages).toHaveLength(3);
});

test('returns no measurements for a stopped agent', async () => {
  await platform.backend(ada, 'POST', `/api/agents/${agentId}/stop?wait=60`);
  expect((await get(`/api/runtime/instances/${agentId}/stats`)).body).toEqual({
    id: agentId,
    running: false,
    stats: null,
  });
  expect((await get(`/api/agents/${agentId}/stats`)).body.container).toBeNull();
  const { body } = await platform.web(ada, 'GET', `/api/instance/${ada.id}/stats`);
  const stopped = body.agents.find(({ id }: { id: string }) => id === agentId);
  expect(stopped).toEqual({ id: agentId, status: 'stopped', stats: null });
});
