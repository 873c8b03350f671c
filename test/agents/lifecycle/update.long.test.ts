import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectDocker } from '../../../src/docker/containers/docker-client.js';
import { ensureTestImage } from '../../agent-image/ensure-test-image.js';
import { varyTestImage } from '../../agent-image/vary-test-image.js';
import { readMemory, writeMemory } from '../../support/agent-memory.js';
import { until } from '../../support/until.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';

let platform: TestPlatform;
let ada: TestUser;
/** Versions of the test image: a working one, and one that exits at its start. */
let good: string;
let broken: string;

beforeAll(async () => {
  const docker = connectDocker(process.env.DOCKER_HOST);
  const image = await ensureTestImage(docker);
  const label = (version: string) => `LABEL org.opencontainers.image.version=${version}`;
  good = await varyTestImage(docker, image, 'good', [label('0.0.1-test')]);
  broken = await varyTestImage(docker, image, 'broken', [
    label('0.0.2-test'),
    'ENV EXIT_AT_START=3',
  ]);
  platform = await testPlatform({ env: { AGENT_VERSIONS: `${good},${broken},gone` } });
  ada = await platform.signUp('network');
});
afterAll(() => platform?.close());

const act = (id: string, action: string, body?: unknown) =>
  platform.backend(ada, 'POST', `/api/agents/${id}/${action}?wait=60`, {
    ...(body !== undefined && { body }),
  });
const shown = async (id: string) => (await platform.backend(ada, 'GET', `/api/agents/${id}`)).body;
const archivesOf = async (id: string) =>
  (await platform.web(ada, 'GET', `/api/agents/${id}/archives`)).body.archives;

const remember = (id: string, what: string) => writeMemory(platform.docker, id, 'memory', what);
const recall = (id: string) => readMemory(platform.docker, id, 'memory');

/** Counts the agent's Docker resources by kind. */
async function holdings(id: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const name of await platform.resourcesOf(id)) {
    const [kind = ''] = name.split(' ');
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return counts;
}

const ONE_OF_EACH = { container: 1, network: 1, volume: 1 };

async function deleteWholly(id: string): Promise<void> {
  await platform.backend(ada, 'DELETE', `/api/agents/${id}`);
  await until(async () => (await platform.resourcesOf(id)).length === 0);
}

describe('an update', () => {
  test('an update runs the new version and keeps the memory', async () => {
    const id = await platform.runningAgent(ada);
    await remember(id, 'before the update');
    const answer = await act(id, 'update', { version: good });
    expect(answer.body).toMatchObject({ operation: 'update', status: 'succeeded', error: null });
    expect(await recall(id)).toBe('before the update');
    expect(await shown(id)).toMatchObject({
      status: 'active',
      openclawVersion: '0.0.1-test',
      failedVersion: null,
    });
    expect(await holdings(id)).toEqual(ONE_OF_EACH);

    // Without a version the update uses the one that new agents run.
    const back = await platform.web(ada, 'POST', `/api/agents/${id}/update?wait=60`);
    expect([back.status, back.body.status]).toEqual([202, 'succeeded']);
    expect(await shown(id)).toMatchObject({ openclawVersion: '0.0.0-test' });
    expect(await recall(id)).toBe('before the update');
    await deleteWholly(id);
  });

  test('an update to a version that does not start is rolled back', async () => {
    const id = await platform.runningAgent(ada);
    await remember(id, 'before the update');
    const before = await platform.containers.inspect(id);
    const answer = await act(id, 'update', { version: broken });
    expect(answer.body).toMatchObject({ status: 'failed' });
    expect(answer.body.error).toContain('exit code 3');
    expect(answer.body.error).toContain('rolled back');

    await platform.becomes(id, 'active');
    const after = await platform.containers.inspect(id);
    expect([after?.id, after?.status]).toEqual([before?.id, 'running']);
    expect(await recall(id)).toBe('before the update');
    expect(await shown(id)).toMatchObject({
      openclawVersion: '0.0.0-test',
      failedVersion: broken,
    });
    expect(await holdings(id)).toEqual(ONE_OF_EACH);
    await deleteWholly(id);
  });

  test('a version that failed before is installed only if requested by name', async () => {
    const id = await platform.runningAgent(ada);
    expect((await act(id, 'update', { version: good })).body.status).toBe('succeeded');
    const usual = platform.settings.agents.runtimeImage ?? '';
    await platform.asOwner(`UPDATE agents SET failed_image = '${usual}' WHERE id = '${id}'`);
    const refused = await platform.web(ada, 'POST', `/api/agents/${id}/update`);
    expect([refused.status, refused.body.error]).toEqual([
      409,
      expect.stringContaining('failed before'),
    ]);
    const [, version = ''] = usual.split(':');
    expect((await act(id, 'update', { version })).body.status).toBe('succeeded');
    expect(await shown(id)).toMatchObject({ failedVersion: null });
    await deleteWholly(id);
  });

  test('an update to the current or an unavailable version leaves the container unchanged', async () => {
    const id = await platform.runningAgent(ada);
    const before = await platform.containers.inspect(id);
    expect((await act(id, 'update')).body.status).toBe('succeeded');
    const answer = await act(id, 'update', { version: 'gone' });
    expect(answer.body).toMatchObject({ status: 'failed' });
    expect(answer.body.error).toContain('agent:gone is not on the engine');
    await platform.becomes(id, 'active');
    expect(await platform.containers.inspect(id)).toEqual(before);
    expect((await shown(id)).failedVersion).toBeNull();
    for (const version of ['', 'a b', '../x', 'a'.repeat(129), 'x@sha256:1']) {
      expect((await act(id, 'update', { version })).status).toBe(400);
    }
    await deleteWholly(id);
  });

  test(
    'refuses an update to a version that the operator does not allow',
    { tags: 'attack' },
    async () => {
      const id = await platform.runningAgent(ada);
      const operations = async () =>
        (await platform.web(ada, 'GET', `/api/agents/${id}/operations`)).body.operations.length;
      const before = await operations();
      for (const version of ['latest', `${good}x`, '2020.1.1', 'constructor']) {
        for (const listener of ['web', 'backend'] as const) {
          const path = `/api/agents/${id}/update`;
          const refused = await platform[listener](ada, 'POST', path, { body: { version } });
          expect([refused.status, refused.body.error]).toEqual([
            400,
            expect.stringMatching(/^version must be one of those that agents may run: 2.*, gone$/),
          ]);
        }
      }
      expect(await operations()).toBe(before);
      await deleteWholly(id);
    },
  );

  test('a repeated update request returns the running one, and a different update is refused', async () => {
    const id = await platform.runningAgent(ada);
    // Delays the container's stop by four seconds.
    await platform.orderAgent(id, { stopDelayMs: 4_000 });
    const ask = (version: string) =>
      platform.backend(ada, 'POST', `/api/agents/${id}/update`, { body: { version } });
    const first = await ask(good);
    const again = await ask(good);
    expect([again.status, again.body.operationId]).toEqual([202, first.body.operationId]);
    const other = await ask(broken);
    expect([other.status, other.body.error]).toEqual([409, 'Another operation is running: update']);
    expect((await act(id, 'update', { version: good })).body).toMatchObject({
      operationId: first.body.operationId,
      status: 'succeeded',
    });
    await deleteWholly(id);
  });

  test('an update of a stopped agent takes effect at its next start', async () => {
    const id = await platform.runningAgent(ada);
    await act(id, 'stop');
    expect((await act(id, 'update', { version: good })).body.status).toBe('succeeded');
    expect((await platform.containers.inspect(id))?.status).toBe('exited');
    expect((await shown(id)).status).toBe('stopped');
    expect((await act(id, 'start')).body.status).toBe('succeeded');
    expect(await shown(id)).toMatchObject({ openclawVersion: '0.0.1-test' });
    await deleteWholly(id);
  });
});

describe('a new configuration', () => {
  test('a configuration with which the agent does not start is rolled back', async () => {
    const id = await platform.runningAgent(ada, { config: { note: 'mine' } });
    await remember(id, 'kept');
    const { plan, aiProvider } = await shown(id);
    const { config } = (await platform.web(ada, 'GET', `/api/agents/${id}/config`)).body;
    const put = await platform.backend(ada, 'PUT', `/api/agents/${id}`, {
      body: {
        plan: 'collective',
        aiProvider: 'groq',
        config: { runtime: { test: { exitAtStart: 4 } } },
      },
    });
    expect(put.status).toBe(200);
    const operation = await until(async () => {
      const { body } = await platform.web(ada, 'GET', `/api/agents/${id}/operations`);
      return body.operations[0].finishedAt !== null && body.operations[0];
    });
    expect(operation).toMatchObject({ operation: 'configure', status: 'failed' });
    expect(operation.error).toContain('rolled back');

    expect((await platform.becomes(id, 'active')).body).toMatchObject({
      plan,
      aiProvider,
    });
    expect((await platform.web(ada, 'GET', `/api/agents/${id}/config`)).body.config).toEqual(
      config,
    );
    expect(await recall(id)).toBe('kept');
    await deleteWholly(id);
  });
});

describe("an agent's memory", () => {
  test('resetting the memory archives it, and restoring the archive brings it back', async () => {
    const id = await platform.runningAgent(ada);
    await remember(id, 'first life');
    expect((await act(id, 'reset-memory')).body.status).toBe('succeeded');
    expect(await recall(id)).toBe('nothing');
    await platform.becomes(id, 'active');
    const [first] = await archivesOf(id);
    expect(first).toEqual({
      id: expect.any(String),
      reason: 'reset-memory',
      createdAt: expect.any(String),
    });

    await remember(id, 'second life');
    expect((await act(id, 'restore', { archiveId: first.id })).body.status).toBe('succeeded');
    expect(await recall(id)).toBe('first life');
    const archives = await archivesOf(id);
    expect(archives.map(({ reason }: { reason: string }) => reason)).toEqual([
      'restore',
      'reset-memory',
    ]);
    expect(await holdings(id)).toEqual({ container: 1, network: 1, volume: 3 });

    expect((await act(id, 'restore', { archiveId: archives[0].id })).body.status).toBe('succeeded');
    expect(await recall(id)).toBe('second life');
    await deleteWholly(id);
  });

  test('keeps five archives at most, also for a stopped agent', async () => {
    const id = await platform.runningAgent(ada);
    await act(id, 'stop');
    for (let time = 1; time <= 6; time++) {
      expect((await act(id, 'reset-memory')).body.status).toBe('succeeded');
    }
    expect(await archivesOf(id)).toHaveLength(5);
    expect(await holdings(id)).toEqual({ network: 1, volume: 6 });
    expect((await act(id, 'start')).body.status).toBe('succeeded');
    expect(await holdings(id)).toEqual({ container: 1, network: 1, volume: 6 });
    await deleteWholly(id);
  });

  test("restores only the agent's own archives", async () => {
    const id = await platform.runningAgent(ada);
    const unknown = await platform.web(ada, 'POST', `/api/agents/${id}/restore`, {
      body: { archiveId: 'none' },
    });
    expect([unknown.status, unknown.body.error]).toEqual([404, 'Archive not found']);
    expect((await act(id, 'restore', {})).status).toBe(400);
    const bob = await platform.signUp('solo');
    for (const action of ['update', 'reset-memory', 'repair']) {
      const other = await platform.web(bob, 'POST', `/api/agents/${id}/${action}`);
      expect([action, other.status]).toEqual([action, 404]);
    }
    expect((await platform.web(bob, 'GET', `/api/agents/${id}/archives`)).status).toBe(404);
    await deleteWholly(id);
  });
});
