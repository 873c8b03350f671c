import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newAddress, pagesOf } from '../../support/http.js';
import {
  ADMIN_EMAIL,
  testPlatform,
  type TestPlatform,
  type TestUser,
} from '../../support/platform.js';
import { transactionsOf } from '../../support/transactions.js';

let platform: TestPlatform;

// Without workers agents keep their initial state: these tests cover only the answers.
beforeAll(async () => {
  platform = await testPlatform({ workers: false, env: { AGENT_HOST_CAPACITY: '1000' } });
});
afterAll(() => platform?.close());

const PATH = '/api/agents/provision';
const provision = (user: TestUser | undefined, body: unknown, headers = {}) =>
  platform.web(user, 'POST', PATH, { body, headers });
const newName = () => `agent ${randomUUID()}`;

describe('provisioning over the web API', () => {
  test('returns 201 with the new agent in status provisioning', async () => {
    const ada = await platform.signUp('solo');
    const made = await provision(ada, { name: 'First' });
    expect(made.status).toBe(201);
    expect(made.body).toEqual({
      success: true,
      agent: {
        id: expect.any(String),
        name: 'First',
        status: 'provisioning',
        websocketUrl: expect.stringMatching(/^ws:\/\/first-[0-9a-f]{8}\.localhost/),
        model: 'gpt-6-luna',
        createdAt: expect.any(String),
      },
    });
    expect(made.headers.get('x-temporal-run')).toBeNull();
    const { body } = await platform.web(ada, 'GET', `/api/agents/${made.body.agent.id}`);
    expect(body.status).toBe('ok');
    expect(body.agent).toMatchObject({
      model: 'gpt-6-luna',
      plan: 'solo',
      aiProvider: 'anthropic',
      desired: 'running',
      statusReason: null,
      startedAt: null,
    });
  });

  test.each([
    [{}, 400, 'name is required'],
    [{ name: ' ' }, 400, 'name is required'],
    [{ name: 'x'.repeat(65) }, 400, 'name must be at most 64 characters'],
    [{ name: 'x', model: 'gpt-2' }, 400, 'model must be one of claude-opus-4-6, gpt-4, custom'],
    [{ name: 'x', model: 'custom' }, 400, 'config.model must name the model when model is custom'],
    [{ name: 'x', tier: 'platinum' }, 400, 'tier must be one of starter, pro, enterprise'],
    [{ name: 'x', tier: 'pro' }, 402, 'The plan collective needs a subscription'],
    [{ name: 'x', tier: 'free' }, 402, 'A paid plan is required'],
    [{ name: 'x', model: 'gpt-4' }, 403, 'Model gpt-4 is not part of the plan "solo"'],
    [
      { name: 'x', model: 'custom', config: { model: 'gpt-6.1-sol' } },
      403,
      'Model gpt-6.1-sol is not part of the plan "solo"',
    ],
    [{ name: 'x', config: { runtime: [] } }, 400, 'config.runtime must be an object'],
    [{ name: 'x', config: { big: 'x'.repeat(70_000) } }, 400, 'config must be at most 64 KiB'],
  ])('refuses an invalid or too expensive request (%#)', async (body, status, error) => {
    const refused = await provision(await platform.signUp('solo'), body);
    expect([refused.status, refused.body.error]).toEqual([status, error]);
  });

  test('provisioning requires a session and, except for administrators, a subscription', async () => {
    expect((await provision(undefined, { name: 'x' })).status).toBe(401);
    const refused = await provision(await platform.signUp(), { name: 'x' });
    expect(refused.status).toBe(402);
    expect(refused.body).toMatchObject({
      error: 'Active subscription required',
      code: 'SUBSCRIPTION_REQUIRED',
    });
    const admin = await platform.signUp(undefined, ADMIN_EMAIL);
    for (const name of ['one', 'two', 'three', 'four']) {
      expect((await provision(admin, { name })).status).toBe(201);
    }
  });

  test.each([
    ['label', 1],
    ['solo', 1],
    ['collective', 3],
  ] as const)('the plan %s allows %d agents, then returns 429', async (plan, limit) => {
    const user = await platform.signUp(plan);
    for (let made = 0; made < limit; made++) {
      expect((await provision(user, { name: newName() })).status).toBe(201);
    }
    const refused = await provision(user, { name: newName() });
    expect(refused.status).toBe(429);
    expect(refused.body).toMatchObject({ error: 'Agent limit reached', current: limit, limit });
    const { body } = await platform.web(user, 'GET', '/api/agents');
    expect(body.count).toBe(limit);
  });

  test('concurrent requests cannot exceed the agent limit', async () => {
    const user = await platform.signUp('solo');
    const both = await Promise.all(
      Array.from({ length: 4 }, () => provision(user, { name: newName() })),
    );
    expect(both.map(({ status }) => status).sort()).toEqual([201, 429, 429, 429]);
  });

  test('returns 409 for a name in use, but another user may use the name', async () => {
    const [ada, bob] = [await platform.signUp('network'), await platform.signUp('network')];
    expect((await provision(ada, { name: 'Same' })).status).toBe(201);
    const refused = await provision(ada, { name: 'Same' });
    expect([refused.status, refused.body.error]).toEqual([
      409,
      'An agent named "Same" exists already',
    ]);
    expect((await provision(bob, { name: 'Same' })).status).toBe(201);
  });

  test('an Idempotency-Key makes one agent, and with a different body returns 422', async () => {
    const user = await platform.signUp('network');
    const key = { 'idempotency-key': randomUUID() };
    const name = newName();
    const first = await provision(user, { name }, key);
    const again = await provision(user, { name }, key);
    expect([again.status, again.body]).toEqual([201, first.body]);
    expect((await provision(user, { name: newName() }, key)).status).toBe(422);
    expect((await platform.web(user, 'GET', '/api/agents')).body.count).toBe(1);
    // Keys are separate for each user.
    const other = await platform.signUp('network');
    const made = await provision(other, { name }, key);
    expect(made.body.agent.id).not.toBe(first.body.agent.id);
  });

  test('a retry after a lost answer returns the same agent, and with a different body 422', async () => {
    const user = await platform.signUp('network');
    const key = { 'idempotency-key': randomUUID() };
    const first = await provision(user, { name: 'lost' }, key);
    // State after the backend did not answer the web API in time.
    await platform.asOwner(
      `UPDATE idempotency_keys SET state = 'running', locked_until = now() - interval '1 s'
        WHERE caller = '${user.id}'`,
    );
    expect((await provision(user, { name: 'another' }, key)).status).toBe(422);
    const again = await provision(user, { name: 'lost' }, key);
    expect([again.status, again.body]).toEqual([201, first.body]);
    expect((await platform.web(user, 'GET', '/api/agents')).body.count).toBe(1);
  });

  test.each([
    ['with', 4],
    ['without', 2],
  ])('provisioning %s an Idempotency-Key needs %d transactions', async (way, most) => {
    const user = await platform.signUp('network');
    const key = () => ({ 'idempotency-key': randomUUID() });
    const counts: number[] = [];
    for (let i = 0; i < 4; i++) {
      const made = () => provision(user, { name: newName() }, way === 'with' ? key() : {});
      counts.push(await transactionsOf(made));
    }
    // Other transactions, such as those of a new connection, may be counted too, but never fewer.
    expect(Math.min(...counts)).toBe(most);
  });

  test('chooses the provider for the model', async () => {
    const user = await platform.signUp('network');
    const providers = [];
    for (const body of [{ model: 'gpt-4' }, { model: 'custom', config: { model: 'mine' } }, {}]) {
      const made = await provision(user, { name: newName(), ...body });
      const shown = await platform.web(user, 'GET', `/api/agents/${made.body.agent.id}`);
      providers.push(shown.body.agent.aiProvider);
    }
    expect(providers).toEqual(['openai', 'openai', 'anthropic']);
  });

  test('limits requests from one address to 100 per minute', async () => {
    const { headers } = await platform.web(undefined, 'GET', '/api/agents');
    expect(headers.get('ratelimit-limit')).toBe('100');
  });
});

describe('provisioning with channels', () => {
  const withChannels = (user: TestUser) =>
    platform.web(user, 'POST', '/api/provision', {
      body: { name: newName() },
      // Each address has five requests a minute.
      from: newAddress(),
    });

  test.each([
    ['solo', 1],
    ['collective', 3],
    ['label', 10],
  ] as const)('the plan %s allows %d agents in all, then returns 429', async (plan, limit) => {
    const user = await platform.signUp(plan);
    expect((await provision(user, { name: newName() })).status).toBe(201);
    for (let made = 1; made < limit; made++) {
      expect((await withChannels(user)).status).toBe(201);
    }
    const refused = await withChannels(user);
    expect([refused.status, refused.body]).toMatchObject([
      429,
      { error: 'Agent limit reached', code: 'AGENT_LIMIT_REACHED', current: limit, limit },
    ]);
  });

  test('the plan network has no limit there', async () => {
    const user = await platform.signUp('network');
    const { id } = (await withChannels(user)).body.agent;
    await platform.asOwner(`
      INSERT INTO agents
      SELECT (jsonb_populate_record(a, jsonb_build_object(
               'id', 'many-' || n, 'name', 'many ' || n, 'subdomain', 'many-' || n, 'port', null,
               'subnet', null, 'desired', 'stopped'))).*
        FROM agents a, generate_series(1, 100) n WHERE a.id = '${id}'`);
    expect((await provision(user, { name: newName() })).status).toBe(429);
    expect((await withChannels(user)).status).toBe(201);
  });

  test('one of fifty concurrent requests gets the last place', async () => {
    const user = await platform.signUp('collective');
    for (let made = 0; made < 2; made++) await withChannels(user);
    const all = await Promise.all(Array.from({ length: 50 }, () => withChannels(user)));
    const statuses = all.map(({ status }) => status);
    expect(statuses.filter((status) => status === 201)).toHaveLength(1);
    expect(statuses.filter((status) => status === 429)).toHaveLength(49);
  });

  test('the operator can switch provisioning off', async () => {
    const off = await testPlatform({ workers: false, env: { PROVISIONING_ENABLED: 'false' } });
    try {
      const user = await off.signUp('solo');
      const refused = await off.web(user, 'POST', '/api/provision', { body: { name: 'x' } });
      expect([refused.status, refused.body.error]).toEqual([503, 'Provisioning is disabled']);
    } finally {
      await off.close();
    }
  });
});

describe('list of agents', () => {
  test('the list is empty without a session and for a user without agents', async () => {
    const empty = { agents: [], count: 0, status: 'ok' };
    const nobody = await platform.web(undefined, 'GET', '/api/agents');
    expect([nobody.status, nobody.body]).toEqual([200, empty]);
    expect((await platform.web(await platform.signUp(), 'GET', '/api/agents')).body).toEqual(empty);
    expect((await platform.web(undefined, 'GET', PATH)).status).toBe(401);
  });

  test('the list shows agents as in the contract, oldest first, page by page', async () => {
    const user = await platform.signUp('network');
    const names = ['a', 'b', 'c'];
    for (const name of names) await provision(user, { name });
    for (const list of ['/api/agents', PATH]) {
      const seen: string[] = [];
      const ask = (path: string) => platform.web(user, 'GET', path);
      for await (const { body, status } of pagesOf(ask, `${list}?limit=1`)) {
        expect([status, body.agents.length]).toEqual([200, 1]);
        seen.push(body.agents[0].name);
      }
      expect(seen).toEqual(names);
    }
    const { body } = await platform.web(user, 'GET', '/api/agents');
    expect(body.agents[0]).toEqual({
      id: expect.any(String),
      name: 'a',
      // The default selects the best model that the only provider serves.
      model: 'gpt-6.1-sol',
      status: 'provisioning',
      websocketUrl: expect.stringMatching(/^ws:/),
      createdAt: expect.stringMatching(/Z$/),
      updatedAt: expect.stringMatching(/Z$/),
    });
    expect((await platform.web(user, 'GET', PATH)).body.success).toBe(true);
  });

  test.each(['limit=0', 'limit=201', 'limit=x', 'cursor=x', 'cursor=WyJ4IiwieSJd'])(
    'the list refuses %s',
    async (query) => {
      const user = await platform.signUp();
      expect((await platform.web(user, 'GET', `/api/agents?${query}`)).status).toBe(400);
    },
  );
});

describe('single agent', () => {
  test.each([
    ['GET', ''],
    ['PUT', ''],
    ['DELETE', ''],
    ['GET', '/config'],
    ['PUT', '/config'],
    ['GET', '/operations'],
    ['POST', '/start'],
    ['POST', '/stop'],
    ['POST', '/restart'],
  ])('a missing agent returns 404 for %s %s, and 401 without a session', async (method, rest) => {
    const user = await platform.signUp();
    const body = method === 'PUT' ? { config: {} } : undefined;
    const missing = await platform.web(user, method, `/api/agents/${randomUUID()}${rest}`, {
      body,
    });
    expect([missing.status, missing.body.error]).toEqual([404, 'Agent not found']);
    const nobody = await platform.web(undefined, method, `/api/agents/x${rest}`, { body });
    expect([nobody.status, nobody.body.error]).toEqual([401, 'Unauthorized']);
  });

  test('an impossible agent id is refused without an internal error', async () => {
    const user = await platform.signUp();
    for (const id of ['%00', 'x'.repeat(10_000), '%ff', '%F0%9F%92%A9', "'", '..%2f..']) {
      const { status } = await platform.web(user, 'GET', `/api/agents/${id}`);
      expect([400, 404]).toContain(status);
    }
  });

  test(
    "the agent's configuration is limited to the models and plans its owner pays for",
    { tags: 'attack' },
    async () => {
      const user = await platform.signUp('solo');
      const config = { model: 'gpt-6-luna' };
      const { id } = (await provision(user, { name: 'mine', model: 'custom', config })).body.agent;
      const put = async (body: object, rest = '') => {
        const answer = await platform.web(user, 'PUT', `/api/agents/${id}${rest}`, { body });
        return [answer.status, answer.body.code];
      };
      for (const plan of ['network', 'free']) {
        expect(await put({ plan })).toEqual([402, 'PLAN_REQUIRED']);
      }
      expect(await put({ aiProvider: 'nobody' })).toEqual([400, undefined]);
      const dear = { config: { model: 'gpt-6.1-sol' } };
      for (const rest of ['', '/config']) {
        expect(await put(dear, rest)).toEqual([403, 'MODEL_RESTRICTED']);
        expect(await put({ config: {} }, rest)).toEqual([400, undefined]);
      }
      const shown = await platform.web(user, 'GET', `/api/agents/${id}/config`);
      expect(shown.body.config).toEqual(config);
    },
  );

  /** Returns a configuration with `on` enabled and `off` disabled skills. */
  const withSkills = (on: number, off = 0) => {
    const entries = Array.from({ length: on + off }, (_, n) => [`s${n}`, { enabled: n < on }]);
    return { runtime: { skills: { entries: Object.fromEntries(entries) } } };
  };

  test("limits the enabled skills to those of the owner's plan", { tags: 'attack' }, async () => {
    const user = await platform.signUp('label');
    const limited = (current: number) => ({ code: 'SKILL_LIMIT_REACHED', current, limit: 3 });
    const refused = await provision(user, { name: 'x', config: withSkills(4) });
    expect([refused.status, refused.body]).toMatchObject([429, limited(0)]);
    const { id } = (await provision(user, { name: 'x', config: withSkills(3, 2) })).body.agent;
    const put = await platform.web(user, 'PUT', `/api/agents/${id}/config`, {
      body: { config: withSkills(4) },
    });
    expect([put.status, put.body]).toMatchObject([429, limited(3)]);
    const one = await platform.web(user, 'POST', '/api/agent', {
      body: { action: 'update-skill', agentId: id, skill: 'one-more', enabled: true },
    });
    expect([one.status, one.body]).toMatchObject([429, limited(3)]);
  });

  test("does not run an agent whose owner's plan has lapsed", { tags: 'attack' }, async () => {
    const user = await platform.signUp('solo');
    const { id } = (await provision(user, { name: 'mine' })).body.agent;
    await platform.asOwner(
      `UPDATE subscriptions SET period_start = now() - interval '2 days',
              period_end = now() - interval '1 s' WHERE user_id = '${user.id}'`,
    );
    const post = async (path: string, body?: object) => {
      const answer = await platform.web(user, 'POST', path, { body });
      return [answer.status, answer.body.code];
    };
    for (const kind of ['start', 'restart', 'repair']) {
      expect(await post(`/api/agents/${id}/${kind}`)).toEqual([402, 'PLAN_REQUIRED']);
    }
    const asked = { agentId: id, message: 'hello' };
    expect(await post('/api/chat', asked)).toEqual([402, 'PLAN_REQUIRED']);
    expect(await post('/api/agent', { action: 'chat', ...asked })).toEqual([402, 'PLAN_REQUIRED']);
    // Reading and removing the agent require no plan.
    expect((await platform.web(user, 'GET', `/api/agents/${id}`)).status).toBe(200);
    expect((await platform.web(user, 'DELETE', `/api/agents/${id}`)).status).toBe(200);
  });
});

describe('user instance', () => {
  test("shows a user's plan and agents to that user only", async () => {
    const user = await platform.signUp('collective');
    const { id } = (await provision(user, { name: 'one' })).body.agent;
    const path = `/api/instance/${user.id}`;
    const shown = await platform.web(user, 'GET', path);
    expect(shown.body).toMatchObject({
      userId: user.id,
      plan: 'collective',
      count: 1,
      status: 'ok',
    });
    expect(shown.body.agents[0].name).toBe('one');
    expect(shown.headers.get('ratelimit-limit')).toBe('30');
    const other = await platform.signUp();
    expect((await platform.web(other, 'GET', path)).status).toBe(404);
    expect((await platform.web(other, 'GET', `${path}/stats`)).status).toBe(404);
    expect((await platform.web(undefined, 'GET', path)).status).toBe(401);
    expect((await platform.web(user, 'GET', `${path}/stats`)).body).toEqual({
      userId: user.id,
      running: 0,
      cpuPercent: 0,
      memoryBytes: 0,
      agents: [{ id, status: 'provisioning', stats: null }],
      status: 'ok',
    });
  });
});

test("a user's instance lists more than 200 agents in pages", async () => {
  const user = await platform.signUp('network');
  const { id } = (await provision(user, { name: 'one' })).body.agent;
  await platform.asOwner(`
    INSERT INTO agents
    SELECT (jsonb_populate_record(a, jsonb_build_object(
             'id', 'more-' || n, 'name', 'more ' || n, 'subdomain', 'more-' || n, 'port', null,
             'subnet', null, 'desired', 'stopped', 'created_at', a.created_at + n * interval '1 s'))).*
      FROM agents a, generate_series(1, 204) n WHERE a.id = '${id}'`);
  const ask = (path: string) => platform.web(user, 'GET', path);
  const pages: number[] = [];
  const ids = new Set<string>();
  const first = `/api/instance/${user.id}?limit=200`;
  for await (const { body } of pagesOf(ask, first)) {
    pages.push(body.count);
    for (const agent of body.agents) ids.add(agent.id);
  }
  expect([pages, ids.size]).toEqual([[200, 5], 205]);
  expect((await ask(`/api/instance/${user.id}`)).body.count).toBe(50);
  expect((await ask(`/api/instance/${user.id}?limit=201`)).status).toBe(400);
});

test('GET /api/health requires no session', async () => {
  const { status, body } = await platform.web(undefined, 'GET', '/api/health');
  expect(status).toBe(200);
  expect(body).toEqual({
    status: 'ok',
    health: expect.stringMatching(/^(healthy|degraded|unhealthy)$/),
    timestamp: expect.stringMatching(/Z$/),
    cpu: { usage: expect.any(Number), cores: expect.any(Number) },
    memory: {
      usage: expect.any(Number),
      total: expect.any(Number),
      used: expect.any(Number),
      free: expect.any(Number),
    },
    uptime: expect.any(Number),
  });
});
