import { randomUUID } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CONFIG_FILE } from '../../../src/docker/containers/openclaw-config.js';
import { STATE_DIRECTORY, containerName } from '../../../src/docker/containers/container-spec.js';
import { until } from '../../support/until.js';
import { pagesOf } from '../../support/http.js';
import {
  TEMPORAL_UI,
  testPlatform,
  type TestPlatform,
  type TestUser,
} from '../../support/platform.js';

let platform: TestPlatform;
let ada: TestUser;

beforeAll(async () => {
  platform = await testPlatform();
  ada = await platform.signUp('network');
});
afterAll(() => platform?.close());

const act = (id: string, action: string, query = '') =>
  platform.backend(ada, 'POST', `/api/agents/${id}/${action}${query}`);
/** The history of an agent, read three at a time. */
async function onPages(id: string, listener: 'web' | 'backend') {
  const history: { operations: unknown[]; transitions: unknown[] } = {
    operations: [],
    transitions: [],
  };
  const ask = (path: string) => platform[listener](ada, 'GET', path);
  for await (const { body } of pagesOf(ask, `/api/agents/${id}/operations?limit=3`)) {
    expect(body.operations.length + body.transitions.length).toBeLessThanOrEqual(3);
    history.operations.push(...body.operations);
    history.transitions.push(...body.transitions);
  }
  return history;
}

const operationsOf = async (id: string) =>
  (await platform.backend(ada, 'GET', `/api/agents/${id}/operations`)).body.operations;
const dockerContainer = (id: string) => platform.docker.getContainer(containerName(id));

/** Deletes the agent and waits until nothing is left of it. */
async function deleteWholly(id: string): Promise<void> {
  const deleted = await platform.backend(ada, 'DELETE', `/api/agents/${id}`);
  expect([deleted.status, deleted.body]).toEqual([200, { id, deleted: true }]);
  const shown = await platform.backend(ada, 'GET', `/api/agents/${id}`);
  expect(shown.status).toBe(404);
  const row = await until(async () => {
    const found = await platform.db.asPlatform().transaction((db) => db.Agent.findByPk(id));
    return found?.deletedAt ? found : undefined;
  });
  expect(row.port).toBeNull();
  expect(await platform.resourcesOf(id)).toEqual([]);
}

/** Keeps the next stop of the container from ending for four seconds, or until it is killed. */
const holdStop = (id: string) => platform.tellAgent(id, { stopDelayMs: 4_000 });

describe('an agent', () => {
  test('goes from provisioning to running, with every step on record', async () => {
    const made = await platform.web(ada, 'POST', '/api/agents/provision', {
      body: { name: 'First' },
    });
    expect(made.body.agent.status).toBe('provisioning');
    const { id } = made.body.agent;
    const shown = await platform.becomes(id, 'active');
    expect(shown.body).toMatchObject({
      desired: 'running',
      statusReason: null,
      observedAt: expect.any(String),
      startedAt: expect.any(String),
      openclawVersion: '0.0.0-test',
    });
    const onWeb = await platform.web(ada, 'GET', `/api/agents/${id}`);
    expect(onWeb.body.agent.status).toBe('running');
    expect(onWeb.body.agent.websocketUrl).toMatch(/^ws:\/\/first-[0-9a-f]{8}\.localhost:\d+$/);
    await until(async () => (await operationsOf(id))[0].status === 'succeeded');
    expect(await operationsOf(id)).toEqual([
      {
        id: expect.any(String),
        operation: 'provision',
        status: 'succeeded',
        error: null,
        requestedAt: expect.any(String),
        finishedAt: expect.any(String),
      },
    ]);
    const names = await platform.resourcesOf(id);
    expect(names.sort()).toEqual([
      `container /agent-${id}`,
      `network agent-${id}`,
      `volume agent-${id}`,
    ]);
    await deleteWholly(id);
  });

  test('is stopped, started and restarted, and waited for', async () => {
    const id = await platform.runningAgent(ada);
    const stopped = await act(id, 'stop', '?wait=60');
    expect(stopped.status).toBe(202);
    const supervisor = platform.temporal.client.workflow.getHandle(`supervise-agent-${id}`);
    const { runId } = await supervisor.describe();
    const { namespace } = platform.temporal;
    expect(stopped.headers.get('x-temporal-run')).toBe(
      `${TEMPORAL_UI}/namespaces/${namespace}/workflows/supervise-agent-${id}/${runId}/history`,
    );
    const { operationId } = stopped.body;
    expect(stopped.body).toEqual({
      id,
      operation: 'stop',
      operationId,
      status: 'succeeded',
      error: null,
    });
    expect((await platform.becomes(id, 'stopped')).body.desired).toBe('stopped');
    expect((await platform.web(ada, 'GET', `/api/agents/${id}`)).body.agent.status).toBe('stopped');
    expect((await platform.containers.inspect(id))?.status).toBe('exited');

    const onWeb = await platform.web(ada, 'POST', `/api/agents/${id}/start?wait=60`);
    expect([onWeb.status, onWeb.body.status]).toEqual([202, 'succeeded']);
    expect(onWeb.headers.get('x-temporal-run')).toBeNull();
    await platform.becomes(id, 'active');
    const before = await platform.containers.inspect(id);

    expect((await act(id, 'restart', '?wait=60')).body.status).toBe('succeeded');
    const after = await platform.containers.inspect(id);
    expect(after?.id).toBe(before?.id);
    expect(after?.startedAt).not.toBe(before?.startedAt);

    const history = await platform.web(ada, 'GET', `/api/agents/${id}/operations`);
    expect(history.body.operations.map((each: { operation: string }) => each.operation)).toEqual([
      'restart',
      'start',
      'stop',
      'provision',
    ]);
    expect(await onPages(id, 'web')).toEqual(history.body);
    expect(await onPages(id, 'backend')).toEqual(history.body);
    expect((await act(id, 'stop', '?wait=61')).status).toBe(400);
    await deleteWholly(id);
  });

  test('does one thing at a time, and the same thing once', async () => {
    const id = await platform.runningAgent(ada);
    await holdStop(id);
    const first = await act(id, 'stop');
    expect([first.status, first.body.error]).toEqual([202, null]);
    await until(async () => (await operationsOf(id))[0].status === 'running');

    const again = await act(id, 'stop');
    expect([again.status, again.body.operationId]).toEqual([202, first.body.operationId]);
    const other = await act(id, 'start');
    expect([other.status, other.body.error]).toEqual([409, 'Another operation is running: stop']);
    const change = await platform.web(ada, 'PUT', `/api/agents/${id}/config`, {
      body: { config: {} },
    });
    expect(change.status).toBe(409);
    expect(await operationsOf(id)).toHaveLength(2);

    expect((await act(id, 'stop', '?wait=60')).body).toMatchObject({
      operationId: first.body.operationId,
      status: 'succeeded',
    });
    await deleteWholly(id);
  });

  test('repeats a request with its Idempotency-Key as one operation', async () => {
    const id = await platform.runningAgent(ada);
    const headers = { 'idempotency-key': randomUUID() };
    const restart = () =>
      platform.backend(ada, 'POST', `/api/agents/${id}/restart?wait=60`, { headers });
    const first = await restart();
    const again = await restart();
    expect(again.body).toEqual(first.body);
    expect(await operationsOf(id)).toHaveLength(2);
    await deleteWholly(id);
  });

  test('is left alone by a change of nothing', async () => {
    const id = await platform.runningAgent(ada);
    const put = await platform.web(ada, 'PUT', `/api/agents/${id}`, { body: {} });
    expect([put.status, put.body]).toMatchObject([
      200,
      { id, plan: 'network', status: 'running', message: 'No changes requested' },
    ]);
    expect(await operationsOf(id)).toMatchObject([{ operation: 'provision' }]);
    await deleteWholly(id);
  });

  test('takes on a new plan, provider and configuration', async () => {
    const id = await platform.runningAgent(ada);
    const put = await platform.web(ada, 'PUT', `/api/agents/${id}`, {
      body: {
        plan: 'collective',
        aiProvider: 'groq',
        config: { runtime: { messages: { prefix: 'told-by-this-test' } } },
      },
    });
    expect(put.status).toBe(200);
    expect(put.body).toEqual({
      id,
      plan: 'collective',
      aiProvider: 'groq',
      subdomain: expect.any(String),
      status: 'running',
      message: expect.stringContaining('restarts'),
    });
    await until(async () => (await operationsOf(id))[0].status === 'succeeded');
    expect(await configIn(id)).toContain('told-by-this-test');
    expect((await platform.becomes(id, 'active')).body).toMatchObject({
      plan: 'collective',
      aiProvider: 'groq',
    });

    const config = { runtime: { messages: { prefix: 'then-this' } }, note: 'mine' };
    const replaced = await platform.web(ada, 'PUT', `/api/agents/${id}/config`, {
      body: { config },
    });
    expect(replaced.body).toEqual({ id, config, message: expect.any(String) });
    await until(async () => (await operationsOf(id))[0].status === 'succeeded');
    expect(await configIn(id)).toContain('then-this');
    const shown = await platform.web(ada, 'GET', `/api/agents/${id}/config`);
    expect(shown.body).toEqual({ id, config });
    await deleteWholly(id);
  });

  test('that ends by itself is started again', async () => {
    const id = await platform.runningAgent(ada);
    const before = await platform.containers.inspect(id);
    await platform.tellAgent(id, { exit: 1 });
    await until(async () => {
      const now = await platform.containers.inspect(id);
      return now?.status === 'running' && now.startedAt !== before?.startedAt;
    });
    await platform.becomes(id, 'active');
    await deleteWholly(id);
  });
});

describe('deletion', () => {
  const create = async () =>
    (await platform.backend(ada, 'POST', '/api/agents', { body: { name: randomUUID() } })).body.id;

  test('takes an agent away while it is being provisioned', async () => {
    await deleteWholly(await create());
  });

  test('takes an agent away that is stopped, and again says so', async () => {
    const id = await platform.runningAgent(ada);
    await act(id, 'stop', '?wait=60');
    await deleteWholly(id);
    const again = await platform.backend(ada, 'DELETE', `/api/agents/${id}`);
    expect(again.body).toEqual({ id, deleted: true });
    expect((await platform.web(ada, 'DELETE', `/api/agents/${id}`)).status).toBe(404);
  });

  test('ends what runs', async () => {
    const id = await platform.runningAgent(ada);
    await holdStop(id);
    await act(id, 'stop');
    await until(async () => (await operationsOf(id))[0].status === 'running');
    await deleteWholly(id);
  });

  test('twice at the same time is one', async () => {
    const id = await platform.runningAgent(ada);
    const both = await Promise.all(
      [1, 2].map(() => platform.backend(ada, 'DELETE', `/api/agents/${id}`)),
    );
    expect(both.map(({ body }) => body)).toEqual([
      { id, deleted: true },
      { id, deleted: true },
    ]);
    await deleteWholly(id);
  });

  test('frees name and place in the plan at once', async () => {
    const bob = await platform.signUp('solo');
    const name = 'The only one';
    const id = await platform.runningAgent(bob, { name });
    expect((await platform.web(bob, 'DELETE', `/api/agents/${id}`)).status).toBe(200);
    expect((await platform.web(bob, 'GET', '/api/agents')).body.count).toBe(0);
    const next = await platform.runningAgent(bob, { name });
    expect(next).not.toBe(id);
    await platform.web(bob, 'DELETE', `/api/agents/${next}`);
    await until(async () => (await platform.resourcesOf(next)).length === 0);
  });

  test('takes an agent away that never came up, with the reason told before', async () => {
    const broken = await testPlatform({ env: { AGENT_RUNTIME_IMAGE: 'localhost:1/none:1' } });
    try {
      const user = await broken.signUp('solo');
      const made = await broken.backend(user, 'POST', '/api/agents', { body: { name: 'x' } });
      const { id } = made.body;
      const failed = await broken.becomes(id, 'error');
      expect(failed.body.statusReason).toContain('localhost:1/none:1');
      expect(await broken.resourcesOf(id)).toEqual([]);
      const { body } = await broken.backend(user, 'GET', `/api/agents/${id}/operations`);
      expect(body.operations[0]).toMatchObject({ operation: 'provision', status: 'failed' });
      expect(body.operations[0].error).toBe(failed.body.statusReason);
      const deleted = await broken.web(user, 'DELETE', `/api/agents/${id}`);
      expect(deleted.body).toEqual({ id, deleted: true });
    } finally {
      await broken.close();
    }
  });
});

/** The runtime's configuration file inside the container, as it stands in its archive. */
async function configIn(id: string): Promise<string> {
  const path = `${STATE_DIRECTORY}/${CONFIG_FILE}`;
  return text(await dockerContainer(id).getArchive({ path }));
}
