import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  PROVIDER_BASE_URLS,
  type ProviderName,
} from '../../../src/ai/completion/provider-names.js';
import {
  chunk,
  fails,
  sayHello,
  sendEvents,
  silent,
  startAiProviders,
  type AiProviders,
} from '../../support/ai-providers.js';
import { ADMIN_EMAIL, testPlatform, type TestPlatform } from '../../support/platform.js';
import { startAi, subscribed, type AiBackend } from './support.js';

const ALL = Object.keys(PROVIDER_BASE_URLS) as ProviderName[]; // its keys are the provider names
const ADMIN = { 'x-user-email': ADMIN_EMAIL };

let providers: AiProviders;
let platform: TestPlatform;
const running: AiBackend[] = [];

beforeAll(async () => {
  providers = await startAiProviders();
  platform = await testPlatform({
    workers: false,
    dead: ['docker'],
    env: { ...providers.env(), AI_PROVIDER: 'openrouter' },
  });
});
afterEach(async () => {
  providers.behave();
  providers.asked();
  await Promise.all(running.splice(0).map((backend) => backend.close()));
});
afterAll(async () => {
  await platform?.close();
  await providers?.close();
});

type Given = Parameters<typeof startAi> extends [unknown, ...infer Rest] ? Rest : never;

async function start(...given: Given): Promise<AiBackend> {
  const backend = await startAi(platform, ...given);
  running.push(backend);
  return backend;
}

/** Makes the named providers fail, or all if none is named. */
function failing(...names: ProviderName[]): void {
  for (const name of names.length === 0 ? ALL : names) providers.behave(name, fails(503));
}

/** Returns the models requested for this body, in order, while every provider fails. */
async function chainOf(backend: AiBackend, plan: string, body: object): Promise<string[]> {
  failing();
  const answer = await backend.chat(subscribed(plan), body);
  expect(answer.status).toBe(500);
  return providers.asked();
}

describe('failing model', () => {
  test.each<[ProviderName, string, string]>([
    ['openai', 'openai/gpt-6-luna', 'openai/gpt-6.1-sol'],
    ['gemini', 'gemini/gemini-2.5-flash', 'gemini/gemini-3.8-flash'],
    ['groq', 'groq/openai/gpt-oss-120b', 'groq/openai/gpt-oss-20b'],
    ['anthropic', 'anthropic/claude-haiku-5-5', 'anthropic/claude-sonnet-5-5'],
    ['openrouter', 'openrouter/openai/gpt-6-luna', 'openrouter/google/gemini-2.5-flash'],
    ['minimax', 'minimax/MiniMax-M3', 'minimax/MiniMax-M2.5'],
  ])(
    'a failing model of %s is replaced by its fallback, which the answer names',
    async (name, primary, fallback) => {
      const backend = await start([name], { preferred: name });
      providers.behave(name, (request, response) =>
        `${name}/${request.model}` === primary
          ? fails(500)(request, response)
          : sayHello(request, response),
      );
      const answer = await backend.chat(subscribed('network'));
      expect([answer.status, answer.body.model, answer.body.provider]).toEqual([
        200,
        fallback,
        name,
      ]);
      expect(providers.asked()).toEqual([primary, fallback]);
    },
  );

  test('a failing model is requested from another provider before another model is', async () => {
    const backend = await start(ALL);
    const model = 'anthropic/claude-haiku-5-5';
    expect(await chainOf(backend, 'network', { model })).toEqual([
      model,
      'openrouter/anthropic/claude-haiku-5.5',
      'anthropic/claude-sonnet-5-5',
    ]);
  });

  test('a failing model is not replaced by a model that the plan does not include', async () => {
    const backend = await start(['openai', 'groq', 'anthropic']);
    expect(await chainOf(backend, 'label', { model: 'openai/gpt-6-luna' })).toEqual([
      'openai/gpt-6-luna',
    ]);
    expect(await chainOf(backend, 'solo', { model: 'anthropic/claude-haiku-5-5' })).toEqual([
      'anthropic/claude-haiku-5-5',
    ]);
  });

  test('a model of a provider that is not configured is a 404', async () => {
    const backend = await start(['groq']);
    const answer = await backend.chat(subscribed('label'), { model: 'openai/gpt-6-luna' });
    expect([answer.status, answer.body.error]).toEqual([
      404,
      'No model is available for this task',
    ]);
  });

  test.each([
    ['refuses the content', 'content_policy_violation'],
    ['finds the request wrong', 'invalid_request_error'],
  ])('no other model is requested when the provider %s', async (_what, code) => {
    const backend = await start(ALL);
    providers.behave('openai', fails(400, code));
    const answer = await backend.chat(subscribed('label'), { model: 'openai/gpt-6-luna' });
    expect(answer.status).toBe(400);
    expect(providers.asked()).toEqual(['openai/gpt-6-luna']);
  });

  test('a conversation that is too long is sent to a provider that accepts longer ones', async () => {
    const backend = await start(ALL);
    providers.behave('groq', fails(400, 'context_length_exceeded'));
    const answer = await backend.chat(subscribed('label'), { model: 'groq/openai/gpt-oss-120b' });
    expect(answer.body.model).toBe('openrouter/openai/gpt-oss-120b');
  });
});

describe('task type', () => {
  const openrouter = (...models: string[]) => models.map((model) => `openrouter/${model}`);

  test.each([
    ['reasoning', ['anthropic/claude-opus-5.5', 'openai/gpt-6.1-sol', 'openai/gpt-oss-120b']],
    ['coding', ['anthropic/claude-sonnet-5.5', 'openai/gpt-6.1-sol', 'openai/gpt-oss-120b']],
    ['fast', ['openai/gpt-6-luna', 'google/gemini-2.5-flash', 'openai/gpt-oss-120b']],
    ['creative', ['anthropic/claude-sonnet-5.5', 'google/gemini-3.8-flash', 'openai/gpt-6-luna']],
  ])(
    '%s has a primary model and two fallbacks, in order, only through openrouter',
    async (taskType, models) => {
      const backend = await start(ALL, { preferred: 'openai' });
      expect(await chainOf(backend, 'network', { taskType })).toEqual(openrouter(...models));
    },
  );

  test('a task is served by the first of its models that answers', async () => {
    const backend = await start(ALL);
    let asked = 0;
    providers.behave('openrouter', (request, response) =>
      ++asked < 3 ? fails(429)(request, response) : sayHello(request, response),
    );
    const answer = await backend.chat(ADMIN, { taskType: 'coding' });
    expect(answer.body.model).toBe('openrouter/openai/gpt-oss-120b');
    expect(answer.body.attempts.map(({ outcome }: { outcome: string }) => outcome)).toEqual([
      'rate_limited',
      'rate_limited',
      'ok',
    ]);
  });

  test('a task is given only models of the plan', async () => {
    const backend = await start(ALL);
    const task = { taskType: 'reasoning' };
    const chains = {
      label: ['openai/gpt-oss-120b', 'google/gemini-2.5-flash', 'openai/gpt-6-luna'],
      solo: ['openai/gpt-oss-120b', 'google/gemini-3.8-flash', 'anthropic/claude-haiku-5.5'],
      collective: ['openai/gpt-6.1-sol', 'openai/gpt-oss-120b', 'anthropic/claude-sonnet-5.5'],
    };
    for (const [plan, chain] of Object.entries(chains)) {
      expect(await chainOf(backend, plan, task)).toEqual(openrouter(...chain));
    }
  });

  test.each(['reasoning', 'coding', 'fast', 'creative'])(
    '%s is answered on every plan when one model fails',
    async (taskType) => {
      for (const plan of ['label', 'solo', 'collective', 'network']) {
        const backend = await start(['openrouter']);
        let first = true;
        providers.behave('openrouter', (request, response) => {
          const fail = first;
          first = false;
          return fail ? fails(503)(request, response) : sayHello(request, response);
        });
        const { status } = await backend.chat(subscribed(plan), { taskType });
        expect([plan, status]).toEqual([plan, 200]);
      }
    },
  );

  test('a task is routed first to its own model that the plan includes', async () => {
    const backend = await start(ALL);
    expect(await chainOf(backend, 'solo', { taskType: 'coding' })).toEqual(
      openrouter('openai/gpt-oss-120b', 'anthropic/claude-haiku-5.5', 'google/gemini-3.8-flash'),
    );
  });

  test('a task without a tier goes to the preferred provider, then to the others except minimax', async () => {
    const expected = [
      'groq/openai/gpt-oss-120b',
      'groq/openai/gpt-oss-20b',
      'openrouter/openai/gpt-6-luna',
      'gemini/gemini-2.5-flash',
      'anthropic/claude-haiku-5-5',
      'openai/gpt-6-luna',
    ];
    for (const body of [{}, { taskType: 'general' }, { taskType: '__proto__' }]) {
      const backend = await start(ALL, { preferred: 'groq' });
      expect(await chainOf(backend, 'network', body)).toEqual(expected);
    }
  });

  test('a task is answered without openrouter too', async () => {
    const backend = await start(['anthropic', 'gemini'], { preferred: 'anthropic' });
    const answer = await backend.chat(subscribed('solo'), { taskType: 'coding' });
    expect(answer.body.model).toBe('anthropic/claude-haiku-5-5');
  });
});

test('minimax is never a fallback', async () => {
  const backend = await start(['minimax', 'openai', 'openrouter']);
  const own = { model: 'openrouter/minimax/minimax-m3' };
  for (const body of [{}, { taskType: 'fast' }, { model: 'openai/gpt-6-luna' }, own]) {
    const chain = await chainOf(backend, 'network', body);
    expect(chain.length).toBeGreaterThan(1);
    expect(chain.filter((asked) => asked.startsWith('minimax'))).toEqual([]);
  }
  providers.behave();
  const answer = await backend.chat(subscribed('network'), { model: 'minimax/MiniMax-M3' });
  expect([answer.status, answer.body.model]).toEqual([200, 'minimax/MiniMax-M3']);
});

test('an answer without any provider names the setting to add', async () => {
  const backend = await start([], { preferred: 'groq' });
  const answer = await backend.chat(subscribed('solo'));
  expect([answer.status, answer.body]).toEqual([
    503,
    { error: 'No AI model is available', setup: expect.stringContaining('GROQ_API_KEY') },
  ]);
});

test.each([{}, { stream: true }])(
  'a slow primary leaves its fallback the full timeout: %j',
  async (body) => {
    const backend = await start(['openai', 'openrouter'], { timeoutMs: 4_500 });
    providers.behave('openai', silent);
    providers.behave('openrouter', async (request, response) => {
      await delay(2_400); // longer than the rest of the primary's timeout
      await sayHello(request, response);
    });
    const answer = await backend.chat(ADMIN, { ...body, model: 'openai/gpt-6-luna' });
    expect(answer.status).toBe(200);
    expect(answer.text).toContain('"model":"openrouter/openai/gpt-6-luna"');
    expect(answer.text).toContain('"outcome":"timeout"');
  },
);

test('no other provider is requested after two timeouts', async () => {
  const backend = await start(['openai', 'openrouter', 'groq', 'gemini'], { timeoutMs: 200 });
  for (const name of ['openai', 'openrouter', 'groq', 'gemini'] as const) {
    providers.behave(name, silent);
  }
  const { attempts } = (await backend.chat(ADMIN, { model: 'openai/gpt-6-luna' })).body;
  expect(attempts).toHaveLength(2);
  expect(providers.asked()).toEqual(['openai/gpt-6-luna', 'openrouter/openai/gpt-6-luna']);
});

describe('provider that keeps failing', () => {
  const body = { model: 'openai/gpt-6-luna' };

  test('a provider is skipped for the model that keeps failing, and used for another model', async () => {
    const backend = await start(['openai', 'openrouter']);
    failing('openai');
    for (let n = 0; n < 4; n++) expect((await backend.chat(ADMIN, body)).status).toBe(200);
    expect(providers.asked()).toEqual([
      ...Array.from({ length: 3 }, () => [
        'openai/gpt-6-luna',
        'openrouter/openai/gpt-6-luna',
      ]).flat(),
      'openrouter/openai/gpt-6-luna',
    ]);
    providers.behave();
    await backend.chat(ADMIN, { model: 'openai/gpt-4' });
    expect(providers.asked()).toEqual(['openai/gpt-4']);
  });

  test('a provider whose streams break off is skipped too', async () => {
    const backend = await start(['openai', 'openrouter']);
    providers.behave('openai', (request, response) => {
      sendEvents(response, [chunk(request.model, { content: 'half' })], false);
      setImmediate(() => response.destroy());
    });
    for (let n = 0; n < 3; n++) {
      expect((await backend.chat(ADMIN, { ...body, stream: true })).text).toContain(
        'The answer was interrupted: retry',
      );
    }
    providers.asked();
    const answer = await backend.chat(ADMIN, body);
    expect([answer.status, providers.asked()]).toEqual([200, ['openrouter/openai/gpt-6-luna']]);
  });

  test('a failing provider is requested if there is no alternative', async () => {
    const backend = await start(['openai']);
    failing('openai');
    for (let n = 0; n < 3; n++) await backend.chat(ADMIN, body);
    providers.behave();
    expect((await backend.chat(ADMIN, body)).body.model).toBe('openai/gpt-6-luna');
  });

  test('a provider that sends Retry-After is skipped at once', async () => {
    const backend = await start(['openai', 'openrouter']);
    providers.behave('openai', fails(429, undefined, { 'retry-after': '60' }));
    await backend.chat(ADMIN, body);
    await backend.chat(ADMIN, body);
    expect(providers.asked()).toEqual([
      'openai/gpt-6-luna',
      'openrouter/openai/gpt-6-luna',
      'openrouter/openai/gpt-6-luna',
    ]);
  });
});

test('the log lists the models tried', async () => {
  const backend = await start(['openai', 'openrouter']);
  failing('openai');
  const before = platform.logged.length;
  await backend.chat({ ...ADMIN, 'x-user-id': 'ada' }, { model: 'openai/gpt-6-luna' });
  const lines = platform.logged.slice(before).map((line) => JSON.parse(line));
  expect(lines.find(({ msg }) => msg === 'AI providers failed')).toMatchObject({
    userId: 'ada',
    agentId: null,
    tried: [
      { provider: 'openai', model: 'gpt-6-luna', outcome: 'overloaded' },
      { provider: 'openrouter', model: 'openai/gpt-6-luna', outcome: 'ok' },
    ],
  });
});
