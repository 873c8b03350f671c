import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../../support/until.js';
import { pagesOf } from '../../support/http.js';
import {
  TEMPORAL_UI,
  testPlatform,
  type TestPlatform,
  type TestUser,
} from '../../support/platform.js';
import { AgentActions } from './agent-actions.js';

let platform: TestPlatform;
let ada: TestUser;
let agents: AgentActions;

beforeAll(async () => {
  platform = await testPlatform();
  ada = await platform.signUp('network');
  agents = new AgentActions(platform, ada);
});
afterAll(() => platform?.close());

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
    await until(async () => (await agents.operationsOf(id))[0].status === 'succeeded');
    expect(await agents.operationsOf(id)).toEqual([
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
    await agents.deleteWholly(id);
  });

  test('stops, starts and restarts an agent, waiting for each', async () => {
    const id = await platform.runningAgent(ada);
    const stopped = await agents.act(id, 'stop', '?wait=60');
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

    expect((await agents.act(id, 'restart', '?wait=60')).body.status).toBe('succeeded');
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
    expect((await agents.act(id, 'stop', '?wait=61')).status).toBe(400);
    await agents.deleteWholly(id);
  });

  test('an agent runs one operation at a time, and a repeated request returns the running one', async () => {
    const id = await platform.runningAgent(ada);
    await agents.holdStop(id);
    const first = await agents.act(id, 'stop');
    expect([first.status, first.body.error]).toEqual([202, null]);
    await until(async () => (await agents.operationsOf(id))[0].status === 'running');

    const again = await agents.act(id, 'stop');
    expect([again.status, again.body.operationId]).toEqual([202, first.body.operationId]);
    const other = await agents.act(id, 'start');
    expect([other.status, other.body.error]).toEqual([409, 'Another operation is running: stop']);
    const change = await platform.web(ada, 'PUT', `/api/agents/${id}/config`, {
      body: { config: {} },
    });
    expect(change.status).toBe(409);
    expect(await agents.operationsOf(id)).toHaveLength(2);

    expect((await agents.act(id, 'stop', '?wait=60')).body).toMatchObject({
      operationId: first.body.operationId,
      status: 'succeeded',
    });
    await agents.deleteWholly(id);
  });
});

describe('deletion of an agent', () => {
  test('deletes a stopped agent, and answers a repeated deletion in the same way', async () => {
    const id = await platform.runningAgent(ada);
    await agents.act(id, 'stop', '?wait=60');
    await agents.deleteWholly(id);
    const again = await platform.backend(ada, 'DELETE', `/api/agents/${id}`);
    expect(again.body).toEqual({ id, deleted: true });
    expect((await platform.web(ada, 'DELETE', `/api/agents/${id}`)).status).toBe(404);
  });
});
