import { randomUUID } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import { supervisedOf } from '../../../src/agents/operations/supervisors.js';
import { PLAIN_KINDS } from '../../../src/types/operation-kinds.js';
import { getAgent } from '../../../src/agents/agents/agents.js';
import { createAgent } from '../../../src/agents/lifecycle/create-agent.js';
import { findOperation, requestOperation } from '../../../src/agents/operations/operations.js';
import { ReleaseStore } from '../../../src/agents/operations/release-store.js';
import { OperationStore } from '../../../src/agents/operations/operation-store.js';
import { UnavailableError } from '../../../src/lib/errors.js';
import { recoverOperations } from '../../../worker/recover.js';
import { call } from '../../support/http.js';
import { testPlatform, type PlatformOptions, type TestPlatform } from '../../support/platform.js';
import { testSecrets } from '../../support/secrets.js';

let platform: TestPlatform | undefined;

afterEach(async () => {
  await platform?.close();
  platform = undefined;
});

async function start(options: PlatformOptions): Promise<TestPlatform> {
  platform = await testPlatform(options);
  return platform;
}

const AGENT = { body: { name: 'one' } };

/** Stores an agent as requested in normal operation. */
async function agentOf(on: TestPlatform, userId: string): Promise<string> {
  const { agent } = await createAgent(on.db.asUser(userId), on.secrets, {
    id: randomUUID(),
    userId,
    name: 'from before',
    plan: 'solo',
    model: 'gpt-4',
    aiProvider: 'openai',
    config: {},
    limit: () => Promise.resolve(1),
    requestId: 'test',
  });
  return agent.id;
}

/** Makes the worker resume requests that were left, without its usual delay. */
async function recover(on: TestPlatform): Promise<void> {
  await on.db.asPlatform().query(`UPDATE operations SET looked_at = now() - interval '2 minutes'`);
  const { db: database, supervisors, log } = on;
  const operationStore = new OperationStore(database, testSecrets());
  const services = { operationStore, releases: new ReleaseStore(database) };
  await recoverOperations({ database, supervisors, services, log });
}

const BY = { actor: 'test', requestId: 'test' };

test('the kill switch answers 503 to requests for new agents and changes nothing else', async () => {
  const on = await start({ workers: false, env: { PROVISIONING_ENABLED: 'false' } });
  const user = await on.signUp('solo');
  for (const refused of [
    await on.web(user, 'POST', '/api/agents/provision', AGENT),
    await on.backend(user, 'POST', '/api/agents', AGENT),
    await on.backend(user, 'POST', '/api/deployments', AGENT),
  ]) {
    expect([refused.status, refused.body.error]).toEqual([503, 'Provisioning is disabled']);
  }
  expect((await on.web(user, 'GET', '/api/agents')).body.count).toBe(0);
  const health = await call(on.backendUrl, 'GET', '/health');
  expect(health.body).toMatchObject({ docker: 'available', provisioning: 'disabled' });
});

test('without Docker /health reports it, requests that need containers are a 500, and deletion works', async () => {
  const on = await start({ dead: ['docker'] });
  const user = await on.signUp('solo');
  const id = await agentOf(on, user.id);
  const health = await call(on.backendUrl, 'GET', '/health');
  expect([health.status, health.body]).toEqual([
    200,
    {
      status: 'ok',
      timestamp: expect.any(String),
      docker: 'unavailable',
      provisioning: 'disabled',
      disk: null,
    },
  ]);
  for (const [method, path, body] of [
    ['POST', '/api/agents', { name: 'x' }],
    ['POST', '/api/deployments', { name: 'x' }],
    ['PUT', `/api/agents/${id}`, { config: {} }],
    ['POST', `/api/agents/${id}/start`, undefined],
    ['POST', `/api/agents/${id}/stop`, undefined],
    ['POST', `/api/agents/${id}/restart`, undefined],
    ['GET', `/api/agents/${id}/stats`, undefined],
    ['GET', '/api/runtime/instances', undefined],
    ['GET', `/api/runtime/instances/${id}/stats`, undefined],
    ['GET', `/api/logs/${id}/history`, undefined],
    ['GET', `/api/logs/${id}/stream`, undefined],
  ] as const) {
    const refused = await on.backend(user, method, path, { body });
    expect([path, refused.status, refused.body.error]).toEqual([
      path,
      500,
      'Docker is not available',
    ]);
  }
  const onWeb = await on.web(user, 'POST', '/api/agents/provision', AGENT);
  expect(onWeb.status).toBe(500);
  // Requests that need no container still work.
  expect((await on.backend(user, 'GET', `/api/agents/${id}`)).status).toBe(200);
  const deleted = await on.web(user, 'DELETE', `/api/agents/${id}`);
  expect(deleted.body).toEqual({ id, deleted: true });
  expect((await on.web(user, 'GET', '/api/agents')).body.count).toBe(0);
});

test('an unknown agent is a 404 for every operation, also without Docker and Temporal', async () => {
  const on = await start({ workers: false, dead: ['docker', 'temporal'] });
  const [user, other] = [await on.signUp('solo'), await on.signUp('solo')];
  const operations = [
    ['PUT', '', { plan: 'no plan' }],
    ...PLAIN_KINDS.map((kind) => ['POST', `/${kind}`, undefined] as const),
    ['POST', '/update', { version: '1.0.0' }],
    ['POST', '/restore', { archiveId: randomUUID() }],
  ] as const;
  const onBackend = [
    ...operations,
    ['PUT', '/skills/notes', { enabled: true }],
    ['PUT', '/credentials/TOKEN', { value: 'x' }],
    ['GET', '/stats', undefined],
    ['GET', '/token', undefined],
  ] as const;
  for (const id of [randomUUID(), await agentOf(on, other.id)]) {
    const path = `/api/agents/${id}`;
    for (const [method, rest, body] of onBackend) {
      const { status, text } = await on.backend(user, method, path + rest, { body });
      expect([rest, status, text]).toEqual([rest, 404, expect.stringContaining('Agent not found')]);
    }
    for (const [method, rest, body] of operations) {
      const { status } = await on.web(user, method, path + rest, { body });
      expect([rest, status]).toEqual([rest, 404]);
    }
    for (const change of [
      { action: 'update-skill', skill: 'notes', enabled: true },
      { action: 'set-credential', name: 'TOKEN', value: 'x' },
    ]) {
      const body = { ...change, agentId: id };
      expect((await on.web(user, 'POST', '/api/agent', { body })).status).toBe(404);
    }
  }
});

test('an invalid request is a 400 and an unknown resource a 404, also without Docker', async () => {
  const on = await start({ workers: false, dead: ['docker'] });
  const user = await on.signUp('solo');
  const path = `/api/agents/${await agentOf(on, user.id)}`;
  for (const [method, rest, body, status] of [
    ['PUT', '', { plan: 'no plan' }, 400],
    ['PUT', '', { aiProvider: 'nobody' }, 400],
    ['PUT', '', { plan: 'solo' }, 500],
    ['POST', '/restore', { archiveId: randomUUID() }, 404],
  ] as const) {
    const refused = await on.backend(user, method, path + rest, { body });
    expect([rest, body, refused.status]).toEqual([rest, body, status]);
  }
});

describe('agents without a worker', () => {
  test('a withdrawn operation runs when it is requested again', async () => {
    const on = await start({});
    const user = await on.signUp('solo');
    const id = await on.runningAgent(user);
    const agent = await getAgent(on.db.asUser(user.id), id);
    const operationId = randomUUID();
    // Simulates an absent worker: the request was withdrawn after a timeout and then reached the
    // supervisor.
    await on.supervisors.request(supervisedOf(agent), 'stop', operationId, new Date(0));
    const stop = { id: operationId, kind: 'stop', by: BY } as const;
    const { requestedAt } = await requestOperation(on.db.asUser(user.id), agent, stop);
    await on.supervisors.request(supervisedOf(agent), 'stop', operationId, requestedAt);
    await on.becomes(id, 'stopped');
  });

  test('withdraws a pending request only if the supervisor has not received it', async () => {
    const on = await start({ workers: false });
    const user = await on.signUp('solo');
    const tenant = on.db.asUser(user.id);
    const agent = await getAgent(tenant, await agentOf(on, user.id));
    const [given, other] = [randomUUID(), randomUUID()];
    const stop = { kind: 'stop', by: BY } as const;
    const { requestedAt } = await requestOperation(tenant, agent, { id: given, ...stop });
    await requestOperation(tenant, agent, { id: other, ...stop });
    await expect(
      on.supervisors.request(supervisedOf(agent), 'stop', given, requestedAt),
    ).rejects.toThrow(UnavailableError);
    await recover(on);
    expect(await findOperation(tenant, given)).toMatchObject({ status: 'requested' });
    expect(await findOperation(tenant, other)).toBeNull();
  });
});

describe('agents without Temporal', () => {
  test('without Temporal an agent is created, and it starts once the worker resumes the request', async () => {
    const on = await start({ dead: ['temporal'] });
    const user = await on.signUp('solo');
    const made = await on.web(user, 'POST', '/api/agents/provision', AGENT);
    expect(made.status).toBe(201);
    expect(made.body.agent.status).toBe('provisioning');
    await recover(on);
    await on.becomes(made.body.agent.id, 'active');
  });

  test('an agent starts even if a later request reaches its supervisor first', async () => {
    const on = await start({ dead: ['temporal'] });
    const user = await on.signUp('solo');
    const made = await on.web(user, 'POST', '/api/agents/provision', AGENT);
    const { id } = made.body.agent;
    const tenant = on.db.asUser(user.id);
    const agent = await getAgent(tenant, id);
    // Simulates Temporal's return when the owner's next PUT is faster than the worker.
    const put = { id: randomUUID(), kind: 'configure', by: BY } as const;
    const { requestedAt } = await requestOperation(tenant, agent, put);
    await on.supervisors.request(supervisedOf(agent), put.kind, put.id, requestedAt);
    await recover(on);
    await on.becomes(id, 'active');
    const { body } = await on.backend(user, 'GET', `/api/agents/${id}/operations`);
    expect(body.operations.map((each: { status: string }) => each.status)).toEqual([
      'succeeded',
      'succeeded',
    ]);
  });

  test('without Temporal a lifecycle request is a 503 and is dropped, and a deletion runs later', async () => {
    const on = await start({ dead: ['temporal'] });
    const user = await on.signUp('solo');
    const id = await agentOf(on, user.id);
    const refused = await Promise.all([
      on.web(user, 'POST', `/api/agents/${id}/stop`),
      on.web(user, 'PUT', `/api/agents/${id}`, { body: { plan: 'solo' } }),
    ]);
    for (const { status, body } of refused) {
      expect([status, body.error]).toEqual([
        503,
        'The workflow engine cannot be reached; try again',
      ]);
    }
    const { body } = await on.backend(user, 'GET', `/api/agents/${id}/operations`);
    expect(body.operations.map((each: { operation: string }) => each.operation)).toEqual([
      'provision',
    ]);

    const deleted = await on.web(user, 'DELETE', `/api/agents/${id}`);
    expect(deleted.body).toEqual({ id, deleted: true });
    expect((await on.web(user, 'GET', '/api/agents')).body.count).toBe(0);
    const audited = await on.db
      .asPlatform()
      .query<{ action: string }>('SELECT action FROM audit_log WHERE subject = $id', { id });
    expect(audited.map(({ action }) => action)).toEqual(['agent.create', 'agent.delete']);
    await recover(on);
    await expect
      .poll(() =>
        on.db.asPlatform().transaction((db) => db.Agent.count({ where: { id, deletedAt: null } })),
      )
      .toBe(0);
    expect(await on.resourcesOf(id)).toEqual([]);
  });
});

test('without the backend the web API answers 502, and its own reads still work', async () => {
  const on = await start({ workers: false, dead: ['backend'] });
  const user = await on.signUp('solo');
  const id = await agentOf(on, user.id);
  for (const [method, path, body] of [
    ['POST', '/api/agents/provision', { name: 'x' }],
    ['PUT', `/api/agents/${id}`, {}],
    ['PUT', `/api/agents/${id}/config`, { config: {} }],
    ['DELETE', `/api/agents/${id}`, undefined],
    ['POST', `/api/agents/${id}/start`, undefined],
    ['GET', `/api/instance/${user.id}/stats`, undefined],
  ] as const) {
    const refused = await on.web(user, method, path, { body });
    expect([path, refused.status, refused.body.error]).toEqual([
      path,
      502,
      'The backend is unavailable: retry later',
    ]);
  }
  expect((await on.web(user, 'GET', '/api/agents')).body.count).toBe(1);
  expect((await on.web(user, 'GET', `/api/agents/${id}/operations`)).status).toBe(200);
});
