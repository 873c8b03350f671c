import { randomUUID } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CONFIG_FILE } from '../../../src/docker/containers/openclaw-config.js';
import { STATE_DIRECTORY, containerName } from '../../../src/docker/containers/container-spec.js';
import { until } from '../../support/until.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';
import { AgentActions } from './agent-actions.js';

/** Milliseconds for a repair, which takes 35 s by the spec. */
const REPAIR_MS = 100_000;

let platform: TestPlatform;
let ada: TestUser;
let agents: AgentActions;

beforeAll(async () => {
  platform = await testPlatform();
  ada = await platform.signUp('network');
  agents = new AgentActions(platform, ada);
});
afterAll(() => platform?.close());

describe('the life of an agent', () => {
  test('repeats a request with its Idempotency-Key as one operation', async () => {
    const id = await platform.runningAgent(ada);
    const headers = { 'idempotency-key': randomUUID() };
    const restart = () =>
      platform.backend(ada, 'POST', `/api/agents/${id}/restart?wait=60`, { headers });
    const first = await restart();
    const again = await restart();
    expect(again.body).toEqual(first.body);
    expect(await agents.operationsOf(id)).toHaveLength(2);
    await agents.deleteWholly(id);
  });

  test('an update without changes starts no operation', async () => {
    const id = await platform.runningAgent(ada);
    const put = await platform.web(ada, 'PUT', `/api/agents/${id}`, { body: {} });
    expect([put.status, put.body]).toMatchObject([
      200,
      { id, plan: 'network', status: 'running', message: 'No changes requested' },
    ]);
    expect(await agents.operationsOf(id)).toMatchObject([{ operation: 'provision' }]);
    await agents.deleteWholly(id);
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
    await until(async () => (await agents.operationsOf(id))[0].status === 'succeeded');
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
    await until(async () => (await agents.operationsOf(id))[0].status === 'succeeded');
    expect(await configIn(id)).toContain('then-this');
    const shown = await platform.web(ada, 'GET', `/api/agents/${id}/config`);
    expect(shown.body).toEqual({ id, config });
    await agents.deleteWholly(id);
  });

  test('restarts an agent whose container exits by itself', async () => {
    const id = await platform.runningAgent(ada);
    const before = await platform.containers.inspect(id);
    await platform.orderAgent(id, { exit: 1 });
    await until(async () => {
      const now = await platform.containers.inspect(id);
      return now?.status === 'running' && now.startedAt !== before?.startedAt;
    });
    await platform.becomes(id, 'active', REPAIR_MS);
    await agents.deleteWholly(id);
  });
});

describe('deletion of an agent', () => {
  const create = async () =>
    (await platform.backend(ada, 'POST', '/api/agents', { body: { name: randomUUID() } })).body.id;

  test('deletes an agent that is being provisioned', async () => {
    await agents.deleteWholly(await create());
  });

  test('a deletion cancels a running operation', async () => {
    const id = await platform.runningAgent(ada);
    await agents.holdStop(id);
    await agents.act(id, 'stop');
    await until(async () => (await agents.operationsOf(id))[0].status === 'running');
    await agents.deleteWholly(id);
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
    await agents.deleteWholly(id);
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
  return text(await platform.docker.getContainer(containerName(id)).getArchive({ path }));
}
