import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { call, newAddress } from '../../support/http.js';
import {
  ADMIN_EMAIL,
  TEMPORAL_UI,
  testPlatform,
  type TestPlatform,
  type TestUser,
} from '../../support/platform.js';

let platform: TestPlatform;

beforeAll(async () => {
  platform = await testPlatform({ workers: false });
});
afterAll(() => platform?.close());

const newName = () => `agent ${randomUUID()}`;
const create = (user: TestUser | undefined, body: unknown, headers = {}) =>
  platform.backend(user, 'POST', '/api/agents', { body, headers });

describe('internal key', () => {
  test('the internal key is required: 401 without a key, 403 with a wrong key', async () => {
    const get = (headers: Record<string, string>) =>
      call(platform.backendUrl, 'GET', '/api/agents', { headers });
    const basic: Record<string, string> = { authorization: `Basic ${platform.internalKey}` };
    for (const headers of [{}, basic]) {
      const refused = await get(headers);
      expect([refused.status, refused.body.error]).toEqual([401, 'Unauthorized']);
    }
    const wrong = await get({ authorization: 'Bearer wrong' });
    expect([wrong.status, wrong.body.error]).toEqual([403, 'Forbidden']);
    const inCookie = await get({ cookie: `service-session=${platform.internalKey}` });
    expect(inCookie.status).toBe(401);
    const inQuery = await call(
      platform.backendUrl,
      'GET',
      `/api/agents?access_token=${platform.internalKey}`,
    );
    expect(inQuery.status).toBe(401);
  });

  test('a backend without a configured internal key answers 500 Server misconfigured', async () => {
    const open = await testPlatform({ workers: false, env: { INTERNAL_API_KEY: undefined } });
    try {
      const refused = await open.backend(undefined, 'GET', '/api/agents');
      expect([refused.status, refused.body.error]).toEqual([500, 'Server misconfigured']);
    } finally {
      await open.close();
    }
  });
});

describe('creating an agent on the backend', () => {
  test('creating an agent answers 201 with a link to the Temporal run', async () => {
    const user = await platform.signUp('network');
    const made = await create(user, {
      name: 'First',
      config: { plan: 'collective', aiProvider: 'groq' },
    });
    expect(made.status).toBe(201);
    const { id } = made.body;
    expect(made.body).toEqual({
      id,
      name: 'First',
      agentId: id,
      status: 'pending',
      subdomain: `first-${id.replaceAll('-', '').slice(0, 8)}`,
      url: expect.stringMatching(/^http:\/\/first-/),
      createdAt: expect.any(String),
    });
    expect(made.headers.get('x-temporal-run')).toMatch(
      new RegExp(`^${TEMPORAL_UI}/namespaces/.+/workflows/supervise-agent-${id}/.+/history$`),
    );
    const shown = await platform.backend(user, 'GET', `/api/agents/${id}`);
    expect(shown.body).toMatchObject({
      id,
      status: 'pending',
      startedAt: null,
      plan: 'collective',
      aiProvider: 'groq',
      subdomain: made.body.subdomain,
      url: made.body.url,
      openclawVersion: platform.settings.agents.runtimeVersion,
      verified: false,
      verificationType: null,
      attestationUid: null,
      verifiedAt: null,
      desired: 'running',
    });
  });

  test.each([
    [{}, 'name is required'],
    [
      { name: 'x', config: { plan: 'gold' } },
      'plan must be one of label, solo, collective, network',
    ],
    [{ name: 'x', config: 'none' }, 'config must be an object'],
    [{ name: 'x', config: { plan: 5 } }, 'config.plan must be text'],
  ])('creating an agent answers 400 to the body %j', async (body, error) => {
    const refused = await create(await platform.signUp('network'), body);
    expect([refused.status, refused.body.error]).toEqual([400, error]);
  });

  test('creating an agent answers 402 on the plan free or to a user without a plan', async () => {
    const body = { name: 'x', config: { plan: 'free' } };
    for (const user of [undefined, await platform.signUp('network')]) {
      const refused = await create(user, body);
      expect([refused.status, refused.body.code]).toEqual([402, 'PLAN_REQUIRED']);
      const deployed = await platform.backend(user, 'POST', '/api/deployments', {
        body: { name: 'x', plan: 'free' },
      });
      expect([deployed.status, deployed.body.code]).toEqual([402, 'PLAN_REQUIRED']);
    }
    const refused = await create(await platform.signUp(), { name: 'x' });
    expect([refused.status, refused.body.code]).toEqual([402, 'PLAN_REQUIRED']);
  });

  test.each([
    ['gpt-4', {}],
    ['custom', { model: 'openai/gpt-6.1-sol' }],
    ['custom', { model: 'a-model-that-nobody-knows' }],
  ])(
    'creating an agent answers 403 for a model that the plan does not include: %s %j',
    async (model, config) => {
      const user = await platform.signUp('solo');
      const refused = await platform.backend(user, 'POST', '/api/deployments', {
        body: { name: newName(), model, config },
      });
      expect([refused.status, refused.body.code]).toEqual([403, 'MODEL_RESTRICTED']);
      expect(refused.body.allowedModels).toContain('openai/gpt-6-luna');
      expect((await platform.backend(user, 'GET', '/api/agents')).body).toEqual([]);
    },
  );

  test('a new agent shows the model that its requests use', async () => {
    const user = await platform.signUp('solo');
    const config = { model: 'openai/gpt-6-luna' };
    for (const [body, model] of [
      [{}, 'gpt-6-luna'],
      [{ model: 'custom', config }, 'gpt-6-luna'],
    ] as const) {
      const made = await platform.backend(user, 'POST', '/api/deployments', {
        body: { name: newName(), ...body },
      });
      const shown = await platform.backend(user, 'GET', `/api/agents/${made.body.id}`);
      expect(shown.body.model).toBe(model);
    }
  });

  test('creating an agent answers 404 for an unknown user', async () => {
    const refused = await platform.backend({ id: 'nobody' }, 'POST', '/api/agents', {
      body: { name: 'x' },
    });
    expect([refused.status, refused.body.error]).toEqual([404, 'User not found']);
  });

  test('an agent created without a user belongs to the operator', async () => {
    const made = await create(undefined, { name: newName() });
    expect(made.status).toBe(201);
    const operator = { id: 'operator' };
    const shown = await platform.backend(operator, 'GET', `/api/agents/${made.body.id}`);
    expect(shown.status).toBe(200);
  });

  test.each([
    ['label', 1],
    ['solo', 3],
  ] as const)(
    'the plan %s allows %d agents, and the next creation is a 402',
    async (plan, limit) => {
      const user = await platform.signUp(plan);
      const made = [];
      for (let n = 0; n <= limit; n++) made.push(create(user, { name: newName() }));
      const answers = await Promise.all(made);
      const refused = answers.filter(({ status }) => status === 402);
      expect(answers.filter(({ status }) => status === 201)).toHaveLength(limit);
      expect(refused).toHaveLength(1);
      expect(refused[0]?.body).toMatchObject({
        code: 'AGENT_LIMIT_REACHED',
        current: limit,
        limit,
      });
    },
  );

  test('an administrator has no agent limit', async () => {
    const admin = await platform.signUp(undefined, ADMIN_EMAIL);
    const both = [await create(admin, { name: 'a' }), await create(admin, { name: 'b' })];
    expect(both.map(({ status }) => status)).toEqual([201, 201]);
  });

  test('an Idempotency-Key creates one agent, even for concurrent requests', async () => {
    const user = await platform.signUp('network');
    const headers = { 'idempotency-key': randomUUID() };
    const body = { name: newName() };
    const both = await Promise.all([create(user, body, headers), create(user, body, headers)]);
    const made = both.filter(({ status }) => status === 201);
    expect(both.every(({ status }) => status === 201 || status === 409)).toBe(true);
    expect(new Set(made.map((answer) => answer.body.id)).size).toBe(1);
    expect((await platform.backend(user, 'GET', '/api/agents')).body).toHaveLength(1);
    expect((await create(user, { name: newName() }, headers)).status).toBe(422);
  });

  test('POST /api/deployments creates an agent, at most five times a minute from one address', async () => {
    const user = await platform.signUp('network');
    const from = newAddress();
    const deploy = () =>
      platform.backend(user, 'POST', '/api/deployments', {
        body: { name: newName(), plan: 'pro', model: 'gpt-4', agentLimit: 50 },
        headers: { 'x-forwarded-for': from },
      });
    const made = await deploy();
    expect(made.status).toBe(201);
    expect(made.headers.get('x-temporal-run')).toContain(made.body.id);
    const { body } = await platform.backend(user, 'GET', `/api/agents/${made.body.id}`);
    expect(body).toMatchObject({ plan: 'collective', aiProvider: 'openai', model: 'gpt-4' });
    for (let n = 2; n <= 5; n++) expect((await deploy()).status).toBe(201);
    const refused = await deploy();
    expect([refused.status, refused.body.error]).toEqual([429, 'Deployment rate limit exceeded.']);
  });
});

describe('agent list on the backend', () => {
  test("the agent list is a flat array of the contract's items, for all users or for one", async () => {
    const [ada, bob] = [await platform.signUp('network'), await platform.signUp('network')];
    const { id } = (await create(ada, { name: newName() })).body;
    await create(bob, { name: newName() });
    const { body } = await platform.backend(ada, 'GET', '/api/agents');
    expect(body).toEqual([
      {
        id,
        status: 'pending',
        created: expect.stringMatching(/Z$/),
        subdomain: expect.any(String),
        url: expect.any(String),
      },
    ]);
    const all = await platform.backend(undefined, 'GET', '/api/agents?limit=1');
    expect(all.body).toHaveLength(1);
    expect(all.headers.get('link')).toMatch(/^<\/api\/agents\?limit=1&cursor=.+>; rel="next"$/);
  });
});

describe('missing agent', () => {
  test.each([
    ['GET', '/api/agents/:id'],
    ['PUT', '/api/agents/:id'],
    ['GET', '/api/agents/:id/messages'],
    ['GET', '/api/agents/:id/stats'],
    ['GET', '/api/agents/:id/token'],
    ['GET', '/api/agents/:id/operations'],
    ['POST', '/api/agents/:id/start'],
    ['POST', '/api/agents/:id/stop'],
    ['POST', '/api/agents/:id/restart'],
    ['GET', '/api/runtime/instances/:id/stats'],
    ['GET', '/api/logs/:id/history'],
    ['GET', '/api/logs/:id/stream'],
    ['GET', '/api/logs/:id/active'],
    ['POST', '/api/logs/:id/stop'],
  ])('a missing agent is a 404 for %s %s, and no id causes a 500', async (method, template) => {
    const body = template.endsWith('logs/:id/stop') ? { streamId: 'x' } : undefined;
    const given = { body: method === 'PUT' ? {} : body };
    const at = (id: string) =>
      platform.backend(undefined, method, template.replace(':id', id), given);
    const missing = await at(randomUUID());
    expect([missing.status, missing.body.error]).toEqual([404, 'Agent not found']);
    for (const id of ['%00', 'x'.repeat(10_000), '%ff', "'"]) {
      expect([400, 404]).toContain((await at(id)).status);
    }
  });

  test('deleting a missing agent succeeds', async () => {
    const id = randomUUID();
    const deleted = await platform.backend(undefined, 'DELETE', `/api/agents/${id}`);
    expect([deleted.status, deleted.body]).toEqual([200, { id, deleted: true }]);
  });
});

describe('granting a plan', () => {
  const grant = (body: unknown) =>
    platform.backend(undefined, 'POST', '/api/subscriptions/deploy', { body });

  test('a granted plan replaces the current plan at once', async () => {
    const user = await platform.signUp('solo');
    const granted = await grant({ userId: user.id, plan: 'network' });
    expect([granted.status, granted.body]).toEqual([
      200,
      { success: true, userId: user.id, plan: 'network', status: 'active' },
    ]);
    const { body } = await platform.web(user, 'GET', `/api/instance/${user.id}`);
    expect(body.plan).toBe('network');
  });

  test('granting an invalid plan or to an unknown user is refused', async () => {
    const user = await platform.signUp();
    const free = await grant({ userId: user.id, plan: 'free' });
    expect([free.status, free.body.code]).toEqual([402, 'PLAN_REQUIRED']);
    expect((await grant({ userId: user.id, plan: 'gold' })).status).toBe(400);
    expect((await grant({ userId: user.id })).status).toBe(400);
    expect((await grant({ userId: 'nobody', plan: 'solo' })).status).toBe(404);
  });
});

describe('health of the backend', () => {
  test('the health of the backend is public', async () => {
    const { status, body } = await call(platform.backendUrl, 'GET', '/health');
    expect([status, body]).toEqual([
      200,
      {
        status: 'ok',
        timestamp: expect.stringMatching(/Z$/),
        docker: 'available',
        provisioning: 'enabled',
        disk: { total: expect.any(Number), free: expect.any(Number), low: false },
      },
    ]);
  });

  test(
    'health checks send Docker at most about one request a second, however many clients send them',
    { tags: 'attack' },
    async () => {
      const asked = vi.spyOn(platform.dockerHost, 'available');
      try {
        const ask = () => call(platform.backendUrl, 'GET', '/health');
        const answers = await Promise.all(Array.from({ length: 50 }, ask));
        expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
        expect(asked.mock.calls.length).toBeLessThanOrEqual(3);
      } finally {
        asked.mockRestore();
      }
    },
  );

  test('accepts heartbeats from anyone and marks a registered installation as active', async () => {
    const user = await platform.signUp();
    await platform.asOwner(
      `INSERT INTO installations (user_id, mode, status, registered_at, last_seen)
       VALUES ('${user.id}', 'home', 'inactive', 'epoch', 'epoch')`,
    );
    const beat = (body?: unknown) => call(platform.backendUrl, 'POST', '/api/heartbeat', { body });
    for (const body of [undefined, {}, { userId: 'nobody' }, { userId: user.id }]) {
      const answer = await beat(body);
      expect([answer.status, answer.body]).toEqual([
        200,
        { success: true, timestamp: expect.any(String) },
      ]);
    }
    expect((await beat({ userId: 7 })).status).toBe(400);
    const seen = await platform.db.asPlatform().transaction((db) => db.Installation.findAll());
    expect(seen).toHaveLength(1);
    expect(seen[0]).toMatchObject({ userId: user.id, status: 'active' });
    expect(seen[0]?.lastSeen.getTime()).toBeGreaterThan(0);
  });

  test('GET /api/runtime/version returns the image of new agents and the version in its name', async () => {
    const { body } = await call(platform.backendUrl, 'GET', '/api/runtime/version');
    expect(body).toEqual({ version: 'latest', image: platform.settings.agents.runtimeImage });
  });
});
