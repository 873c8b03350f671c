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

/** Milliseconds for a repair, which takes 35 s by the spec. */
const REPAIR_MS = 100_000;

let platform: TestPlatform;
let ada: TestUser;

beforeAll(async () => {
  platform = await testPlatform();
  ada = await platform.signUp('network');
});
afterAll(() => platform?.close());

const act = (id: string, action: string, query = '') =>
  platform.backend(ada, 'POST', `/api/agents/${id}/${action}${query}`);
/** Reads the history of an agent, three entries a page. */
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

/** Deletes the agent and waits until all its resources are removed. */
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

/** Delays the container's next stop by four seconds, unless it is killed. */
const holdStop = (id: string) => platform.tellAgent(id, { stopDelayMs: 4_000 });

describe('the life of an agent', () => {
  test('an agent is provisioned until it runs, with every step in its history', async () => {
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

  test('stops, starts and restarts an agent, waiting for each', async () => {
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

  test('an agent runs one operation at a time, and a repeated request returns the running one', async () => {
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

  test('an update without changes starts no operation', async () => {
    const id = await platform.runningAgent(ada);
    const put = await platform.web(ada, 'PUT', `/api/agents/${id}`, { body: {} });
    expect([put.status, put.body]).toMatchObject([
      200,
      { id, plan: 'network', status: 'running', message: 'No changes requested' },
    ]);
    expect(await operationsOf(id)).toMatchObject([{ operation: 'provision' }]);
    await deleteWholly(id);
  });

  test('applies a new plan, provider and configuration', async () => {
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

  test('restarts an agent whose container exits by itself', async () => {
    const id = await platform.runningAgent(ada);
    const before = await platform.containers.inspect(id);
    await platform.tellAgent(id, { exit: 1 });
    await until(async () => {
      const now = await platform.containers.inspect(id);
      return now?.status === 'running' && now.startedAt !== before?.startedAt;
    });
    await platform.becomes(id, 'active', REPAIR_MS);
    await deleteWholly(id);
  });
});

describe('deletion of an agent', () => {
  const create = async () =>
    (await platform.backend(ada, 'POST', '/api/agents', { body: { name: randomUUID() } })).body.id;

  test('deletes an agent that is being provisioned', async () => {
    await deleteWholly(await create());
  });

  test('deletes a stopped agent, and answers a repeated deletion alike', async () => {
    const id = await platform.runningAgent(ada);
    await act(id, 'stop', '?wait=60');
    await deleteWholly(id);
    const again = await platform.backend(ada, 'DELETE', `/api/agents/${id}`);
    expect(again.body).toEqual({ id, deleted: true });
    expect((await platform.web(ada, 'DELETE', `/api/agents/${id}`)).status).toBe(404);
  });

  test('a deletion cancels a running operation', async () => {
    const id = await platform.runningAgent(ada);
    await holdStop(id);
    await act(id, 'stop');
    await until(async () => (await operationsOf(id))[0].status === 'running');
    await deleteWholly(id);
  });

  test('two concurrent deletions are one', async () => {
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

  test("a deletion frees the agent's name and its place in the plan at once", async () => {
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

  test('deletes an agent that failed to provision and has reported the reason', async () => {
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

/** Reads the runtime's configuration file from the container. */
async function configIn(id: string): Promise<string> {
  const path = `${STATE_DIRECTORY}/${CONFIG_FILE}`;
  return text(await dockerContainer(id).getArchive({ path }));
}
