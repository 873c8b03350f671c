import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createBackend } from '../../../api/backend/backend.js';
import { createWeb } from '../../../api/web/web.js';
import { firstAttempt, shownModel } from '../../../src/agents/model/agent-model.js';
import { Completions } from '../../../src/ai/routing/completions.js';
import { loadSettings } from '../../../src/settings.js';
import type { Plan } from '../../../src/types/plans.js';
import { testEnvironment } from '../../support/platform-environment.js';
import { databaseAlone } from '../../support/dependencies.js';
import { call } from '../../support/http.js';
import { startModelServer, type ModelServer } from '../../support/model-server.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { subscribed } from './support.js';

const INTERNAL_API_KEY = 'internal-key-of-this-test';

let database: TestDatabase;
let server: ModelServer;
let platform: Awaited<ReturnType<typeof databaseAlone>>;
let backend: Awaited<ReturnType<ReturnType<typeof createBackend>['listen']>>;
let web: Awaited<ReturnType<ReturnType<typeof createWeb>['listen']>>;

beforeAll(async () => {
  server = await startModelServer('llama3.2:latest');
  database = await testDatabase();
  // AI_PROVIDER names another provider on purpose: a newcomer may set only the address.
  platform = await databaseAlone(database, undefined, {
    INTERNAL_API_KEY,
    OPENAI_BASE_URL: server.baseUrl,
    AI_PROVIDER: undefined,
  });
  await platform.dependencies.ai.discovery.refresh();
  backend = await createBackend(platform.dependencies).listen('127.0.0.1', 0);
  web = await createWeb(platform.dependencies).listen('127.0.0.1', 0);
});
afterAll(async () => {
  await web?.close();
  await backend?.close();
  await platform?.close();
  await database?.close();
  await server?.close();
});

const LLAMA = 'openai/llama3.2:latest';
const MESSAGES = [{ role: 'user', content: 'hello' }];

const ask = (path: string, body: object, headers = subscribed('solo')) =>
  call(backend.url, 'POST', path, {
    headers: { authorization: `Bearer ${INTERNAL_API_KEY}`, ...headers },
    body,
  });

const agent = (model: string, aiProvider = 'anthropic', ownModel?: string) => ({
  model,
  aiProvider,
  ownModel,
});

/** Sets the server's list for the time of some work. */
async function withList(names: readonly string[], work: () => Promise<void>): Promise<void> {
  const { discovery } = platform.dependencies.ai;
  server.list(names.map((id) => ({ id })));
  await discovery.refresh();
  try {
    await work();
  } finally {
    server.list([{ id: 'llama3.2:latest' }]);
    await discovery.refresh();
  }
}

describe('a server with one local model', () => {
  test.each(['label', 'solo', 'collective', 'network'])(
    'answers every kind of task on the plan %s, and no other model is requested',
    async (plan) => {
      server.asked.length = 0;
      for (const body of [{}, { taskType: 'coding' }, { taskType: 'fast' }, { model: LLAMA }]) {
        const { status, body: answer } = await ask(
          '/api/ai/chat',
          { ...body, messages: MESSAGES },
          subscribed(plan),
        );
        expect([status, answer.model, answer.message?.content]).toEqual([
          200,
          LLAMA,
          'said: hello',
        ]);
      }
      const body = { model: 'auto', messages: MESSAGES };
      expect((await ask('/v1/chat/completions', body, subscribed(plan))).status).toBe(200);
      expect(server.asked).toEqual(Array(5).fill('llama3.2:latest'));
    },
  );

  test('a local model costs nothing, and is named with or without its latest version', async () => {
    for (const model of [LLAMA, 'openai/llama3.2']) {
      const body = { model, inputTokens: 1_000_000, outputTokens: 1_000_000 };
      expect((await ask('/api/ai/estimate-cost', body)).body).toMatchObject({ estimatedCost: 0 });
      const answer = await ask('/api/ai/chat', { model, messages: MESSAGES });
      expect(answer.body.model).toBe(LLAMA);
    }
  });

  test('lists the local model as available, and the models of the catalogue as not', async () => {
    const { body } = await call(backend.url, 'GET', '/api/ai/models');
    const available = body.models.filter((model: { available: boolean }) => model.available);
    expect(available).toMatchObject([{ id: LLAMA, provider: 'openai', contextWindow: 8_192 }]);
    expect(body.count).toBeGreaterThan(20);
    expect((await ask('/api/ai/models/select', {})).body.model).toEqual({
      id: LLAMA,
      provider: 'openai',
    });
  });

  test.each<[ReturnType<typeof agent>]>([
    [agent('claude-opus-4-6')],
    [agent('gpt-4', 'openai')],
    [agent('custom', 'openai', 'llama3.2')],
    [agent('custom', 'openai', 'mistral')],
    [agent('custom', 'openai', 'openai/gpt-6-luna')],
  ])('an agent with %j uses the local model', (choice) => {
    const { router } = platform.dependencies.ai;
    expect(firstAttempt(router, choice, 'network')).toMatchObject({
      provider: 'openai',
      model: 'llama3.2:latest',
    });
    expect(shownModel(router, choice, 'network')).toBe(LLAMA);
  });

  test('an agent whose model no longer exists uses the default on every plan', () => {
    const { router } = platform.dependencies.ai;
    for (const plan of ['label', 'solo', 'collective', 'network'] as Plan[]) {
      for (const choice of [agent('claude-opus-4-6'), agent('custom', 'openai', 'mistral')]) {
        expect(firstAttempt(router, choice, plan)?.model).toBe('llama3.2:latest');
      }
    }
  });

  test('a model that the caller names is never replaced by the local one', async () => {
    server.asked.length = 0;
    const answer = await ask('/api/ai/chat', { model: 'openai/gpt-6-luna', messages: MESSAGES });
    expect([answer.status, answer.body]).toEqual([
      404,
      { error: 'No model is available for this task' },
    ]);
    expect(server.asked).toEqual([]);
  });

  test('the demo chat lists six models, the local one first, and answers with it', async () => {
    const { body } = await call(web.url, 'GET', '/api/demo/chat');
    expect(body.models).toHaveLength(6);
    expect(body.models[0]).toEqual({ id: LLAMA, name: 'llama3.2:latest', provider: 'openai' });
    for (const model of [undefined, LLAMA]) {
      const answer = await call(web.url, 'POST', '/api/demo/chat', {
        body: { message: 'hi', model },
      });
      expect([answer.status, answer.body.message]).toEqual([200, 'said: hi']);
    }
    const unavailable = await call(web.url, 'POST', '/api/demo/chat', {
      body: { message: 'hi', model: body.models[1].id },
    });
    expect([unavailable.status, unavailable.body.error]).toEqual([
      503,
      'Demo unavailable — service not configured.',
    ]);
  });

  test('a model of the catalogue is preferred to other models of the server', async () => {
    await withList(['llama3.2:latest', 'gpt-6.1-sol'], async () => {
      const modelOn = async (plan: string) =>
        (await ask('/api/ai/chat', { messages: MESSAGES }, subscribed(plan))).body.model;
      expect(await modelOn('collective')).toBe('openai/gpt-6.1-sol');
      expect(await modelOn('solo')).toBe(LLAMA);
    });
  });
});

test('without any model, a call is immediately a 503 with the remedy', async () => {
  await withList([], async () => {
    server.asked.length = 0;
    const setup = expect.stringContaining('OPENAI_BASE_URL');
    const chat = await ask('/api/ai/chat', { messages: MESSAGES });
    expect([chat.status, chat.body]).toEqual([503, { error: 'No AI model is available', setup }]);
    const completion = await ask('/v1/chat/completions', { messages: MESSAGES });
    expect([completion.status, completion.body.error.message]).toEqual([
      503,
      expect.stringMatching(/^No AI model is available\. Load .*OPENAI_BASE_URL/),
    ]);
    const selected = await ask('/api/ai/models/select', {});
    expect([selected.status, selected.body]).toEqual([
      404,
      { error: 'No model is available for this task' },
    ]);
    const demo = await call(web.url, 'POST', '/api/demo/chat', { body: { message: 'hi' } });
    expect([demo.status, demo.body.error]).toEqual([
      503,
      'Demo unavailable — service not configured.',
    ]);
    expect(server.asked).toEqual([]);
  });
});

describe('a provider that does not know a model', () => {
  const model = 'openai/gpt-6-luna';

  /** Makes the server list a model that it refuses afterwards. */
  const whileGone = (work: () => Promise<void>) =>
    withList(['gpt-6-luna'], async () => {
      server.list([]);
      await work();
    });

  test("an unknown model is a 404 model_not_found in OpenAI's form, after one request to the provider", async () => {
    await whileGone(async () => {
      server.asked.length = 0;
      const { status, body } = await ask('/v1/chat/completions', { model, messages: MESSAGES });
      expect([status, body]).toEqual([
        404,
        {
          error: {
            message: 'The AI provider openai does not have the model gpt-6-luna',
            type: 'invalid_request_error',
            param: null,
            code: 'model_not_found',
          },
        },
      ]);
      expect(server.asked).toEqual(['gpt-6-luna']);
    });
  });

  test('a chat with an unknown model names the model in its error', async () => {
    await whileGone(async () => {
      const { status, body } = await ask('/api/ai/chat', { model, messages: MESSAGES });
      expect([status, body]).toEqual([
        404,
        {
          error: 'The AI provider openai does not have the model gpt-6-luna',
          code: 'model_not_found',
        },
      ]);
    });
  });

  test('a model that no provider lists is a 404 model_not_found too', async () => {
    const body = { model: 'openai/gone', messages: MESSAGES };
    const answer = await ask('/v1/chat/completions', body);
    expect([answer.status, answer.body.error.code]).toEqual([404, 'model_not_found']);
  });
});

test('the health is degraded when a provider answers but has no model', async () => {
  const health = async () => (await call(backend.url, 'GET', '/api/ai/health')).body;
  expect(await health()).toMatchObject({ status: 'healthy', providers: { openai: true } });
  await withList([], async () => {
    expect(await health()).toMatchObject({ status: 'degraded', providers: { openai: true } });
  });
});

test('an attempt at a provider on this machine has its own time limit', async () => {
  const { meter, router } = platform.dependencies.ai;
  const providers = { openai: { baseUrl: server.baseUrl, apiKey: undefined } };
  const answer = async (localTimeoutMs?: number) => {
    const log = pino({ level: 'silent' });
    const parts = {
      providers,
      meter,
      log,
      timeoutMs: 50,
      ...(localTimeoutMs && { localTimeoutMs }),
    };
    const completions = new Completions(parts);
    try {
      return await completions.answer({
        callId: randomUUID(),
        userId: 'ada',
        agentId: null,
        plan: undefined,
        endpoint: '/test',
        route: router.forTask('general', 'solo'),
        request: { messages: MESSAGES },
        signal: new AbortController().signal,
      });
    } finally {
      await completions.close();
    }
  };
  server.slow(500);
  try {
    await expect(answer()).rejects.toThrow('timeout');
    expect((await answer(10_000)).completion.content).toBe('said: hello');
  } finally {
    server.slow(0);
  }
});

test('an attempt has 30 s, and 120 s at a provider on this machine, unless it is set', () => {
  const timesOf = (value: string | undefined) => {
    const env = { DATABASE_URL: 'postgres://x/y', INTERNAL_API_KEY, AI_MODEL_TIMEOUT_MS: value };
    const { localModelTimeoutMs, modelTimeoutMs } = loadSettings(testEnvironment({}, env)).ai;
    return [modelTimeoutMs, localModelTimeoutMs];
  };
  expect(timesOf(undefined)).toEqual([30_000, 120_000]);
  expect(timesOf('5000')).toEqual([5_000, 5_000]);
});
