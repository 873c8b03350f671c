import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createBackend } from '../../../api/backend/backend.js';
import {
  startAiProviders,
  fails,
  keyOfProvider,
  type AiProviders,
} from '../../support/ai-providers.js';
import { networkIsolationCheck } from '../../../src/agents/hosts/network-isolation-check.js';
import { allEvents, call, send, type Answer } from '../../support/http.js';
import { ADMIN_EMAIL, testPlatform, type TestPlatform } from '../../support/platform.js';
import { apiKeyOf, leave, quotaOf, subscribed, usageOf } from './support.js';

const PATH = '/api/ai/chat';
const HELLO = { messages: [{ role: 'user', content: 'hello' }] };

let providers: AiProviders;
let platform: TestPlatform;

beforeAll(async () => {
  providers = await startAiProviders();
  platform = await testPlatform({
    workers: false,
    dead: ['docker'],
    env: { ...providers.env(), AI_PROVIDER: 'openrouter' },
  });
});
afterEach(() => providers.behave());
afterAll(async () => {
  await platform?.close();
  await providers?.close();
});

type Headers = Readonly<Record<string, string>>;

interface User {
  readonly id: string;
}

const newUser = (): User => ({ id: randomUUID() });

/** Sends a chat with the internal key on behalf of a user. */
const chat = (headers: Headers, body: unknown = HELLO, user: User = newUser()) =>
  platform.backend(user, 'POST', PATH, { body, headers });

const chatWith = (key: string, body: unknown = HELLO, headers: Headers = {}) =>
  call(platform.backendUrl, 'POST', PATH, {
    body,
    headers: { authorization: `Bearer ${key}`, ...headers },
  });

/** Sends a chat from this machine without a proxy's header. */
async function chatDirectly(headers: Headers, base = platform.backendUrl): Promise<Answer> {
  const response = await fetch(`${base}${PATH}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(HELLO),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, body: JSON.parse(text) };
}

const refusal = ({ status, body }: Answer) => [status, body.code];

const GREETING = {
  id: expect.stringMatching(/^[0-9a-f-]{36}$/),
  model: 'openrouter/openai/gpt-6-luna',
  provider: 'openrouter',
  message: { role: 'assistant', content: 'hello from openrouter' },
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
  timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
};

describe('authentication of chats', () => {
  test('the internal key may chat on behalf of the user in the headers', async () => {
    const user = { id: randomUUID() };
    const answer = await chat(subscribed('solo'), HELLO, user);
    expect([answer.status, answer.body]).toEqual([200, GREETING]);
    expect(await usageOf(platform, user.id)).toMatchObject([
      {
        agentId: null,
        provider: 'openrouter',
        model: 'openrouter/openai/gpt-6-luna',
        inputTokens: 3,
        outputTokens: 2,
        costUsd: '0.000001',
        endpoint: PATH,
      },
    ]);
    expect(await quotaOf(platform, user.id)).toEqual({ used: 5, held: 0 });
  });

  test('the internal key without a user id counts as anonymous', async () => {
    const before = (await usageOf(platform, 'anonymous')).length;
    const headers = { authorization: `Bearer ${platform.internalKey}`, ...subscribed('label') };
    const answer = await call(platform.backendUrl, 'POST', PATH, { body: HELLO, headers });
    expect(answer.status).toBe(200);
    expect(await usageOf(platform, 'anonymous')).toHaveLength(before + 1);
  });

  test("an API key uses its owner and the owner's plan, regardless of the headers", async () => {
    const user = await platform.signUp('label');
    const key = await apiKeyOf(platform, user);
    const claims = { ...subscribed('network'), 'x-user-id': 'other', 'x-user-email': ADMIN_EMAIL };
    const answer = await chatWith(key, HELLO, claims);
    expect([answer.status, answer.body]).toEqual([200, GREETING]);
    expect(await usageOf(platform, user.id)).toHaveLength(1);
    const dear = { ...HELLO, model: 'openai/gpt-6.1-sol' };
    expect(refusal(await chatWith(key, dear, claims))).toEqual([403, 'MODEL_RESTRICTED']);
  });

  test('local requests outside production may chat with only headers', async () => {
    const id = randomUUID();
    const answer = await chatDirectly({ ...subscribed('solo'), 'x-user-id': id });
    expect([answer.status, answer.body]).toEqual([200, GREETING]);
    expect(await usageOf(platform, id)).toHaveLength(1);
  });

  test.each<Headers>([
    { 'x-forwarded-for': '127.0.0.1' },
    { 'x-forwarded-for': '' },
    { forwarded: 'for=127.0.0.1' },
  ])('requests through a proxy may not chat with only headers: %j', async (proxied) => {
    const claims = { ...subscribed('solo'), 'x-user-email': ADMIN_EMAIL };
    expect(refusal(await chatDirectly({ ...claims, ...proxied }))).toEqual([402, 'PLAN_REQUIRED']);
  });

  test('AI_TRUST_HEADERS=never refuses chats with only headers', async () => {
    const { backend } = platform.dependencies;
    const settings = {
      ...platform.settings,
      ai: { ...platform.settings.ai, trustHeaders: 'never' as const },
    };
    const listening = await createBackend({ ...backend, settings }).listen('127.0.0.1', 0);
    try {
      const claims = { ...subscribed('solo'), 'x-user-email': ADMIN_EMAIL };
      expect(refusal(await chatDirectly(claims, listening.url))).toEqual([402, 'PLAN_REQUIRED']);
      const key = { ...claims, authorization: `Bearer ${platform.internalKey}` };
      expect((await chatDirectly(key, listening.url)).status).toBe(200);
    } finally {
      await listening.close();
    }
  });

  test(
    'refuses chats with only headers if agents may reach loopback',
    { tags: 'attack' },
    async () => {
      const { backend } = platform.dependencies;
      // A host for which no worker has recorded that its agent networks are guarded.
      const agents = { ...platform.settings.agents, host: 'nobody-guards-it' };
      const settings = { ...platform.settings, agents };
      const isGuarded = networkIsolationCheck(platform.db, agents.host);
      const parts = { ...backend, settings, isGuarded };
      const listening = await createBackend(parts).listen('127.0.0.1', 0);
      try {
        const claims = subscribed('solo');
        expect(refusal(await chatDirectly(claims, listening.url))).toEqual([402, 'PLAN_REQUIRED']);
      } finally {
        await listening.close();
      }
    },
  );

  test('refuses a wrong key, also from this machine', async () => {
    const asked = providers.requests.length;
    for (const key of ['wrong', `sk_${'x'.repeat(43)}`, keyOfProvider('openrouter')]) {
      const headers = { ...subscribed('solo'), authorization: `Bearer ${key}` };
      const answer = await chatDirectly(headers);
      expect([answer.status, answer.body]).toEqual([401, { error: 'Unauthorized' }]);
    }
    expect(providers.requests).toHaveLength(asked);
  });
});

describe('plan and subscription', () => {
  test.each([
    [{}, 'PLAN_REQUIRED'],
    [{ 'x-user-plan': 'solo' }, 'SUBSCRIPTION_REQUIRED'],
    [{ 'x-user-plan': 'solo', 'x-billing-subscription-id': '' }, 'SUBSCRIPTION_REQUIRED'],
    [{ 'x-billing-subscription-id': 'sub_1' }, 'PLAN_REQUIRED'],
    [subscribed('free'), 'PLAN_REQUIRED'],
    [subscribed('starter'), 'PLAN_REQUIRED'],
    [subscribed('SOLO'), 'PLAN_REQUIRED'],
    [{ ...subscribed('free'), 'x-user-role': 'admin' }, 'PLAN_REQUIRED'],
    [{ 'x-user-email': `x${ADMIN_EMAIL}` }, 'PLAN_REQUIRED'],
  ])('a chat with headers %j is a 402 %s', async (headers, code) => {
    const asked = providers.requests.length;
    const answer = await chat(headers);
    expect(refusal(answer)).toEqual([402, code]);
    expect(typeof answer.body.error).toBe('string');
    expect(providers.requests).toHaveLength(asked);
  });

  test('an admin needs no plan or subscription and may use every model, in any case of the email', async () => {
    const admin = { 'x-user-email': ADMIN_EMAIL.toUpperCase() };
    for (const headers of [admin, { ...admin, ...subscribed('label') }]) {
      const answer = await chat(headers, { ...HELLO, model: 'openai/gpt-4' });
      expect([answer.status, answer.body.model]).toEqual([200, 'openai/gpt-4']);
    }
    // Also with only headers.
    expect((await chatDirectly(admin)).status).toBe(200);
  });

  test('an admin has no quota', async () => {
    const admin = await platform.signUp('solo', ADMIN_EMAIL);
    await leave(platform, admin, 0, 2_000_000);
    const key = await apiKeyOf(platform, admin);
    expect((await chatWith(key)).status).toBe(200);
    expect((await chat({ 'x-user-email': ADMIN_EMAIL }, HELLO, admin)).status).toBe(200);
  });

  test('refuses a key whose owner has no subscription or an ended one', async () => {
    const none = await apiKeyOf(platform, await platform.signUp());
    expect(refusal(await chatWith(none, HELLO, subscribed('solo')))).toEqual([
      402,
      'PLAN_REQUIRED',
    ]);
    const user = await platform.signUp('solo');
    const key = await apiKeyOf(platform, user);
    expect((await chatWith(key)).status).toBe(200);
    await platform.asOwner(
      `UPDATE subscriptions SET status = 'cancelled' WHERE user_id = '${user.id}'`,
    );
    expect(refusal(await chatWith(key))).toEqual([402, 'SUBSCRIPTION_REQUIRED']);
  });

  test('refuses a user id that is too long without affecting other users', async () => {
    const answer = await chat(subscribed('network'), HELLO, { id: 'x'.repeat(256) });
    expect([answer.status, answer.body.error]).toEqual([
      400,
      'x-user-id must be at most 255 characters',
    ]);
    const longest = { id: 'y'.repeat(255) };
    expect((await chat(subscribed('solo'), HELLO, longest)).status).toBe(200);
    expect(await usageOf(platform, longest.id)).toHaveLength(1);
  });
});

describe('models of a chat', () => {
  test('allowed models grow with the plan: 3, 5, 7 and all', async () => {
    const everything = await call(platform.backendUrl, 'GET', '/api/ai/models');
    const dearest = 'openai/gpt-4';
    const lists: string[][] = [];
    for (const plan of ['label', 'solo', 'collective']) {
      const answer = await chat(subscribed(plan), { ...HELLO, model: dearest });
      expect(refusal(answer)).toEqual([403, 'MODEL_RESTRICTED']);
      lists.push(answer.body.allowedModels);
    }
    lists.push(everything.body.models.map(({ id }: { id: string }) => id));
    const nameOf = new Map<string, string>(
      everything.body.models.map(({ id, name }: { id: string; name: string }) => [id, name]),
    );
    const sizes = lists.map((list) => new Set(list.map((id) => nameOf.get(id))).size);
    expect(sizes.slice(0, 3)).toEqual([3, 5, 7]);
    expect(sizes[3]).toBeGreaterThan(7);
    for (const [n, list] of lists.entries()) {
      expect(lists[n + 1] ?? list).toEqual(expect.arrayContaining(list));
    }
    expect((await chat(subscribed('network'), { ...HELLO, model: dearest })).status).toBe(200);
    for (const model of lists[0] ?? []) {
      expect([model, (await chat(subscribed('label'), { ...HELLO, model })).status]).toEqual([
        model,
        200,
      ]);
    }
  });

  test.each(['openai/gpt-99', 'gpt-6-luna', 'nobody/gpt-6-luna', '__proto__', 'auto'])(
    'an unknown model is a 404: %s',
    async (model) => {
      const answer = await chat(subscribed('network'), { ...HELLO, model });
      expect([answer.status, answer.body]).toEqual([404, { error: 'Model not found' }]);
    },
  );

  test("forwards the chat's parameters to the requested model", async () => {
    const body = {
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Привіт 🚀' },
        { role: 'assistant', content: 'Так?' },
        { role: 'user', content: 'hello' },
      ],
      temperature: 0.5,
      top_p: 0.9,
      max_tokens: 100,
    };
    const answer = await chat(subscribed('label'), { ...body, model: 'openai/gpt-6-luna' });
    expect(answer.body).toMatchObject({
      model: 'openai/gpt-6-luna',
      provider: 'openai',
      message: { content: 'hello from openai' },
    });
    const asked = providers.requests.at(-1);
    expect(asked?.body).toEqual({ ...body, model: 'gpt-6-luna' });
    expect(asked?.headers.authorization).toBe(`Bearer ${keyOfProvider('openai')}`);
  });
});

test('enforces the exact quota and refuses an excessive call before it reaches a provider', async () => {
  for (const [plan, limit] of [
    ['label', 20_000_000],
    ['solo', 2_000_000],
    ['collective', 6_000_000],
  ] as const) {
    const user = await platform.signUp(plan);
    await leave(platform, user, 50, limit);
    const asked = providers.requests.length;
    const answer = await chat(subscribed(plan), HELLO, user);
    expect([answer.status, answer.body]).toEqual([
      429,
      {
        error:
          `Monthly token quota exceeded for plan "${plan}". Used ${limit - 50} of ${limit} ` +
          'tokens. Quota resets at the start of next month.',
        code: 'QUOTA_EXCEEDED',
      },
    ]);
    expect(providers.requests).toHaveLength(asked);
  }
});

describe('streaming chats', () => {
  const events = async (body: unknown, headers: Headers) => {
    const response = await send(platform.backendUrl, 'POST', PATH, { body, headers });
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    return allEvents(response);
  };

  test.each(['openai/gpt-6-luna', 'gemini/gemini-2.5-flash', 'anthropic/claude-haiku-5-5'])(
    'streams from %s if the body or the Accept header requests it',
    async (model) => {
      const user = await platform.signUp('solo');
      const authorization = `Bearer ${await apiKeyOf(platform, user)}`;
      const provider = model.split('/')[0] ?? '';
      const content = `hello from ${provider}`;
      const expected = [
        { event: 'delta', data: { content: 'hello' } },
        { event: 'delta', data: { content: content.slice(5) } },
        {
          event: 'done',
          data: { ...GREETING, model, provider, message: { role: 'assistant', content } },
        },
      ];
      const body = { ...HELLO, model };
      expect(await events({ ...body, stream: true }, { authorization })).toMatchObject(expected);
      const accepting = { authorization, accept: 'text/event-stream' };
      expect(await events(body, accepting)).toMatchObject(expected);
      expect(await usageOf(platform, user.id)).toMatchObject([
        { inputTokens: 3, outputTokens: 2 },
        { inputTokens: 3, outputTokens: 2 },
      ]);
      expect((await quotaOf(platform, user.id)).held).toBe(0);
    },
  );

  test('a refused stream is answered with a plain error before it begins', async () => {
    const body = { ...HELLO, stream: true };
    expect(refusal(await chat(subscribed('free'), body))).toEqual([402, 'PLAN_REQUIRED']);
  });
});

describe('attempts of a chat', () => {
  const attempts = [
    { provider: 'openai', model: 'gpt-6-luna', outcome: 'overloaded', ms: expect.any(Number) },
    {
      provider: 'openrouter',
      model: 'openai/gpt-6-luna',
      outcome: 'ok',
      ms: expect.any(Number),
    },
  ];
  const body = { ...HELLO, model: 'openai/gpt-6-luna' };
  const admin = { 'x-user-email': ADMIN_EMAIL };

  test('returns the attempts to admins only', async () => {
    providers.behave('openai', fails(500));
    expect((await chat(admin, body)).body.attempts).toEqual(attempts);
    expect((await chat(subscribed('network'), body)).body).not.toHaveProperty('attempts');
  });

  test('returns the attempts also if all providers failed', async () => {
    for (const name of ['openai', 'openrouter'] as const) providers.behave(name, fails(400));
    const answer = await chat(admin, body);
    expect(answer.status).toBe(400);
    expect(answer.body.attempts).toMatchObject([{ outcome: 'bad_request' }]);
    expect((await chat(subscribed('network'), body)).body).not.toHaveProperty('attempts');
  });
});

describe('invalid input does not reach a provider', () => {
  const message = { role: 'user', content: 'hello' };
  const broken = (bytes: Buffer) =>
    Buffer.concat([
      Buffer.from('{"messages":[{"role":"user","content":"'),
      bytes,
      Buffer.from('"}]}'),
    ]);

  test.each<[string, unknown, number]>([
    ['no body', '', 400],
    ['nothing', {}, 400],
    ['a list', [message], 400],
    ['text', '"hello"', 400],
    ['half of JSON', '{"messages":[', 400],
    ['no messages', { messages: [] }, 400],
    ['messages that are text', { messages: 'hello' }, 400],
    ['messages that are null', { messages: null }, 400],
    ['a message that is text', { messages: ['hello'] }, 400],
    ['a message that is null', { messages: [message, null] }, 400],
    ['no role', { messages: [{ content: 'hello' }] }, 400],
    ['an unknown role', { messages: [{ role: 'wizard', content: 'hello' }] }, 400],
    ['a role that only OpenAI has', { messages: [{ role: 'tool', content: 'hello' }] }, 400],
    ['no content', { messages: [{ role: 'user' }] }, 400],
    ['empty content', { messages: [{ role: 'user', content: '' }] }, 400],
    ['content of parts', { messages: [{ role: 'user', content: [{ type: 'text' }] }] }, 400],
    ['content that is a number', { messages: [{ role: 'user', content: 1 }] }, 400],
    ['a model that is a number', { ...HELLO, model: 1 }, 400],
    ['an empty model', { ...HELLO, model: '' }, 400],
    ['an endless model', { ...HELLO, model: 'x'.repeat(201) }, 400],
    ['a task type that is a list', { ...HELLO, taskType: ['fast'] }, 400],
    ['negative max_tokens', { ...HELLO, max_tokens: -1 }, 400],
    ['no max_tokens', { ...HELLO, max_tokens: 0 }, 400],
    ['half a token', { ...HELLO, max_tokens: 1.5 }, 400],
    ['max_tokens as text', { ...HELLO, max_tokens: '10' }, 400],
    ['endless max_tokens', '{"messages":[{"role":"user","content":"x"}],"max_tokens":1e999}', 400],
    ['a temperature below', { ...HELLO, temperature: -0.1 }, 400],
    ['a temperature above', { ...HELLO, temperature: 2.1 }, 400],
    ['a top_p above', { ...HELLO, top_p: 1.1 }, 400],
    ['stream as text', { ...HELLO, stream: 'yes' }, 400],
    ['deep nesting', `${'['.repeat(200)}${']'.repeat(200)}`, 400],
    ['a huge message', { messages: [{ role: 'user', content: 'x'.repeat(1024 * 1024) }] }, 413],
    ['very many messages', { messages: Array.from({ length: 40_000 }, () => message) }, 413],
  ])('%s', async (_what, body, status) => {
    const user = { id: randomUUID() };
    const asked = providers.requests.length;
    const answer = await chat(subscribed('solo'), body, user);
    expect(answer.status).toBe(status);
    expect(typeof answer.body.error).toBe('string');
    expect(providers.requests).toHaveLength(asked);
    expect(await quotaOf(platform, user.id)).toEqual({ used: 0, held: 0 });
  });

  test.each([[[0xff, 0xfe]], [[0xc3]], [[0xed, 0xa0, 0x80]], [[0xf0, 0x9f, 0x9a]]])(
    'refuses broken UTF-8: %j',
    async (bytes) => {
      const asked = providers.requests.length;
      const response = await fetch(`${platform.backendUrl}${PATH}`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-forwarded-for': `10.9.8.${bytes[0]}`,
          authorization: `Bearer ${platform.internalKey}`,
          ...subscribed('solo'),
        },
        body: new Uint8Array(broken(Buffer.from(bytes))),
      });
      expect([response.status, await response.json()]).toEqual([
        400,
        { error: 'Request body is not valid UTF-8' },
      ]);
      expect(providers.requests).toHaveLength(asked);
    },
  );

  test('passes text on that cannot be stored', async () => {
    const user = { id: randomUUID() };
    const content = 'a\0b';
    const answer = await chat(subscribed('solo'), { messages: [{ role: 'user', content }] }, user);
    expect(answer.status).toBe(200);
    expect(JSON.stringify(providers.requests.at(-1)?.body)).toContain(JSON.stringify(content));
  });

  test('refuses a content type other than JSON', async () => {
    const answer = await platform.backend(undefined, 'POST', PATH, {
      body: 'hello',
      headers: { ...subscribed('solo'), 'content-type': 'text/plain' },
    });
    expect(answer.status).toBe(415);
  });
});
