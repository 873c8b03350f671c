import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { ProviderHealthCheck } from '../../../src/ai/routing/provider-health.js';
import { startAiProviders, type AiProviders } from '../../support/ai-providers.js';
import { call } from '../../support/http.js';
import { ADMIN_EMAIL, testPlatform, type TestPlatform } from '../../support/platform.js';
import { apiKeyOf, startAi, subscribed } from './support.js';

const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

let providers: AiProviders;
let platform: TestPlatform;

beforeAll(async () => {
  providers = await startAiProviders();
  platform = await testPlatform({
    workers: false,
    dead: ['docker'],
    env: {
      ...providers.env('openrouter', 'openai', 'anthropic'),
      AI_PROVIDER: 'openrouter',
      GROQ_BASE_URL: 'http://127.0.0.1:1/v1',
    },
  });
});
afterAll(async () => {
  await platform?.close();
  await providers?.close();
});

const get = (path: string, base = platform.backendUrl) => call(base, 'GET', path);

describe('GET /api/ai/health', () => {
  test('GET /api/ai/health is degraded if a provider is unreachable', async () => {
    const { status, body } = await get('/api/ai/health');
    expect([status, body]).toEqual([
      200,
      {
        status: 'degraded',
        providers: { openrouter: true, openai: true, anthropic: true, groq: false },
        timestamp: TIME,
      },
    ]);
  });

  test('GET /api/ai/health is healthy if all configured providers are reachable', async () => {
    const backend = await startAi(platform, ['openai', 'anthropic']);
    try {
      const { status, body } = await get('/api/ai/health', backend.url);
      expect([status, body]).toEqual([
        200,
        { status: 'healthy', providers: { openai: true, anthropic: true }, timestamp: TIME },
      ]);
    } finally {
      await backend.close();
    }
  });

  test('GET /api/ai/health is a 503 without a provider', async () => {
    const backend = await startAi(platform, []);
    try {
      const { status, body } = await get('/api/ai/health', backend.url);
      expect([status, body]).toEqual([
        503,
        { status: 'error', error: 'No AI provider is configured' },
      ]);
    } finally {
      await backend.close();
    }
  });
});

describe('reachability of a provider', () => {
  async function playing(status: number) {
    const asked: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      asked.push(request.headers.authorization, request.url);
      response.writeHead(status, { location: '/elsewhere' }).end('x'.repeat(100));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo; // a TCP address is never a string
    const close = async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    };
    return { asked, provider: { baseUrl: `http://127.0.0.1:${port}/v1`, apiKey: 'sk' }, close };
  }

  test.each([
    [200, true],
    [301, true],
    [401, true],
    [404, true],
    [429, true],
    [500, false],
    [503, false],
  ])(
    'a health check answered with %d means reachable: %s, and does not send the key',
    async (status, reachable) => {
      const { asked, provider, close } = await playing(status);
      try {
        expect(await new ProviderHealthCheck({ openai: provider }).check()).toEqual({
          openai: reachable,
        });
        expect(asked).toEqual([undefined, '/v1/models']);
      } finally {
        await close();
      }
    },
  );

  test('checks a provider twice a minute at most, regardless of the number of requests or the wall clock', async () => {
    const { asked, provider, close } = await playing(200);
    vi.useFakeTimers({ toFake: ['Date', 'performance'] });
    try {
      const health = new ProviderHealthCheck({ openai: provider });
      await Promise.all(Array.from({ length: 50 }, () => health.check()));
      vi.advanceTimersByTime(29_999);
      vi.setSystemTime(0);
      await health.check();
      expect(asked).toHaveLength(2);
      vi.advanceTimersByTime(1);
      await health.check();
      expect(asked).toHaveLength(4);
    } finally {
      vi.useRealTimers();
      await close();
    }
  });
});

describe('GET /api/ai/models', () => {
  test('GET /api/ai/models lists all models and counts them by provider', async () => {
    const { status, body } = await get('/api/ai/models');
    expect(status).toBe(200);
    const { models, count, timestamp, ...counts } = body;
    expect([count, timestamp]).toEqual([models.length, TIME]);
    expect(models.map(({ id }: { id: string }) => id)).toEqual(
      platform.dependencies.backend.ai.models.current.entries.map(({ id }) => id),
    );
    expect(new Set(models.map(({ id }: { id: string }) => id)).size).toBe(count);
    expect(Object.keys(counts).toSorted()).toEqual([
      'anthropic',
      'gemini',
      'groq',
      'minimax',
      'openai',
      'openrouter',
    ]);
    expect(Object.values<number>(counts).reduce((a, b) => a + b)).toBe(count);
    for (const model of models) {
      expect(model).toEqual({
        id: expect.stringContaining(`${model.provider}/`),
        name: expect.any(String),
        provider: model.provider,
        description: expect.any(String),
        tags: expect.any(Array),
        inputCost: expect.any(Number),
        outputCost: expect.any(Number),
        contextWindow: expect.any(Number),
        available: ['openrouter', 'openai', 'anthropic', 'groq'].includes(model.provider),
      });
    }
  });

  test('GET /api/ai/models/:provider lists the models of one provider', async () => {
    const all = (await get('/api/ai/models')).body;
    for (const provider of ['openai', 'minimax']) {
      const { status, body } = await get(`/api/ai/models/${provider}`);
      const models = all.models.filter(
        (model: { provider: string }) => model.provider === provider,
      );
      const expected = { provider, models, count: all[provider], timestamp: TIME };
      expect([status, body]).toEqual([200, expected]);
      expect(models).toHaveLength(all[provider]);
    }
  });

  test.each(['nobody', 'OpenAI', '__proto__', 'toString', 'select'])(
    'an unknown provider is a 404: %s',
    async (name) => {
      const { status, body } = await get(`/api/ai/models/${name}`);
      expect([status, body]).toEqual([404, { error: 'Provider not found' }]);
    },
  );
});

describe('POST /api/ai/models/select', () => {
  const select = (body: unknown, headers = {}) =>
    platform.backend(undefined, 'POST', '/api/ai/models/select', { body, headers });

  test.each([
    ['reasoning', 'anthropic/claude-opus-5.5'],
    ['coding', 'anthropic/claude-sonnet-5.5'],
    ['fast', 'openai/gpt-6-luna'],
    ['creative', 'anthropic/claude-sonnet-5.5'],
    ['general', 'openai/gpt-6-luna'],
    ['whatever', 'openai/gpt-6-luna'],
  ])('selects for the task %s the model %s', async (taskType, model) => {
    const { status, body } = await select({ taskType });
    expect([status, body]).toEqual([
      200,
      { model: { id: `openrouter/${model}`, provider: 'openrouter' }, taskType, timestamp: TIME },
    ]);
  });

  test('the task type is general by default', async () => {
    for (const body of [{}, undefined]) {
      expect((await select(body)).body).toMatchObject({ taskType: 'general' });
    }
  });

  test("selects by the plan of the headers or of the API key's owner", async () => {
    const idOf = ({ body }: Awaited<ReturnType<typeof select>>) => body.model.id;
    const ofLabel = 'openrouter/openai/gpt-oss-120b';
    expect(idOf(await select({ taskType: 'coding' }, subscribed('label')))).toBe(ofLabel);
    for (const [user, expected] of [
      [await platform.signUp('label'), ofLabel],
      [await platform.signUp('label', ADMIN_EMAIL), 'openrouter/anthropic/claude-sonnet-5.5'],
    ] as const) {
      const authorization = `Bearer ${await apiKeyOf(platform, user)}`;
      expect(idOf(await select({ taskType: 'coding' }, { authorization }))).toBe(expected);
    }
  });

  test('selecting a model without a provider is a 404', async () => {
    const backend = await startAi(platform, []);
    try {
      const answer = await call(backend.url, 'POST', '/api/ai/models/select', {
        headers: { authorization: `Bearer ${platform.internalKey}` },
        body: {},
      });
      expect([answer.status, answer.body]).toEqual([
        404,
        { error: 'No model is available for this task' },
      ]);
    } finally {
      await backend.close();
    }
  });

  test('selecting a model needs a key', async () => {
    for (const headers of [{}, { authorization: 'Bearer wrong' }, subscribed('solo')]) {
      const answer = await call(platform.backendUrl, 'POST', '/api/ai/models/select', {
        body: {},
        headers,
      });
      expect([answer.status, answer.body]).toEqual([401, { error: 'Unauthorized' }]);
    }
  });

  test.each([{ taskType: 1 }, { taskType: '' }, { taskType: 'x'.repeat(51) }, []])(
    'selecting a model refuses %j',
    async (body) => {
      expect((await select(body)).status).toBe(400);
    },
  );
});

describe('POST /api/ai/estimate-cost', () => {
  const estimate = (body: unknown, headers: Record<string, string> = subscribed('label')) =>
    platform.backend(undefined, 'POST', '/api/ai/estimate-cost', { body, headers });
  const asked = { model: 'openai/gpt-6-luna', inputTokens: 3, outputTokens: 2 };

  test.each([
    ['openai/gpt-6-luna', 3, 2, 0.000001],
    ['openai/gpt-6-luna', 0, 0, 0],
    ['openai/gpt-6-luna', 1_000_000, 1_000_000, 0.6],
    ['groq/openai/gpt-oss-20b', 7, 0, 0.000001],
    ['groq/openai/gpt-oss-20b', 123_457, 765_433, 0.238889],
    ['openai/gpt-4', 1_000_000_000, 1_000_000_000, 90_000],
    ['gemini/gemini-3.8-flash', 1, 1, 0.000005],
  ])(
    'estimates %s for %d and %d tokens at $%d',
    async (model, inputTokens, outputTokens, estimatedCost) => {
      const tokens = { model, inputTokens, outputTokens };
      const { status, body } = await estimate(tokens);
      expect([status, body]).toEqual([
        200,
        { ...tokens, estimatedCost, currency: 'USD', timestamp: TIME },
      ]);
    },
  );

  test.each([
    {},
    { ...asked, model: undefined },
    { ...asked, inputTokens: undefined },
    { ...asked, outputTokens: undefined },
    { ...asked, inputTokens: null },
    { ...asked, inputTokens: -1 },
    { ...asked, outputTokens: 0.5 },
    { ...asked, outputTokens: '2' },
    { ...asked, outputTokens: 1e30 },
    { ...asked, model: '' },
    { ...asked, model: ['openai/gpt-6-luna'] },
  ])('estimating a cost refuses %j', async (body) => {
    const answer = await estimate(body);
    expect([answer.status, typeof answer.body.error]).toEqual([400, 'string']);
  });

  test('estimating the cost of an unknown model is a 404', async () => {
    const answer = await estimate({ ...asked, model: 'openai/gpt-99' });
    expect([answer.status, answer.body]).toEqual([404, { error: 'Model not found' }]);
  });

  test('estimating a cost needs a key and a plan', async () => {
    const path = '/api/ai/estimate-cost';
    const strange = await call(platform.backendUrl, 'POST', path, { body: asked });
    expect(strange.status).toBe(401);
    const refused = await estimate(asked, {});
    expect([refused.status, refused.body.code]).toEqual([402, 'PLAN_REQUIRED']);
    const none = `Bearer ${await apiKeyOf(platform, await platform.signUp())}`;
    const unpaid = await estimate(asked, { authorization: none });
    expect([unpaid.status, unpaid.body.code]).toEqual([402, 'PLAN_REQUIRED']);
    const key = `Bearer ${await apiKeyOf(platform, await platform.signUp('label'))}`;
    expect((await estimate(asked, { authorization: key })).status).toBe(200);
  });

  test('estimating a cost needs no subscription id', async () => {
    expect((await estimate(asked, { 'x-user-plan': 'label' })).status).toBe(200);
  });
});

test('limits AI requests to 30 a minute for each client, with a message of their own', async () => {
  const from = '192.0.2.7';
  const statuses: number[] = [];
  let last = '';
  for (let n = 0; n < 31; n++) {
    const answer = await call(platform.backendUrl, 'GET', '/api/ai/models/openai', { from });
    statuses.push(answer.status);
    last = answer.text;
  }
  expect(statuses).toEqual([...Array.from({ length: 30 }, () => 200), 429]);
  expect(JSON.parse(last)).toEqual({ error: 'AI rate limit exceeded.' });
});
