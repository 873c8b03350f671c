import { randomUUID } from 'node:crypto';
import OpenAI from 'openai';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { readAgentTokens } from '../../../src/agents/credentials/agent-secrets.js';
import {
  chunk,
  fails,
  keyOfProvider,
  sendEvents,
  startAiProviders,
  usageChunk,
  type AiProviders,
} from '../../support/ai-providers.js';
import { call } from '../../support/http.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';
import { completion, sendJson } from '../../support/provider-stub.js';
import { apiKeyOf, leave, quotaOf, usageOf } from './support.js';

let providers: AiProviders;
let platform: TestPlatform;
let user: TestUser;
let apiKey: string;
let agentToken: string;
let agentId: string;

beforeAll(async () => {
  providers = await startAiProviders();
  platform = await testPlatform({
    workers: false,
    env: { ...providers.env('openai'), AI_PROVIDER: 'openai' },
  });
  user = await platform.signUp('network');
  apiKey = await apiKeyOf(platform, user);
  ({ agentId, agentToken } = await newAgent(user));
});
afterEach(() => providers.behave());
afterAll(async () => {
  await platform?.close();
  await providers?.close();
});

async function newAgent(owner: TestUser, model = 'gpt-4') {
  const made = await platform.backend(owner, 'POST', '/api/deployments', {
    body: { name: `agent ${randomUUID()}`, model },
  });
  const id: string = made.body.id;
  for (const token of await readAgentTokens(platform.db.asPlatform(), platform.secrets, id)) {
    const headers = { authorization: `Bearer ${token}` };
    const { status } = await call(platform.agentsUrl, 'GET', '/v1/models', { headers });
    if (status === 200) return { agentId: id, agentToken: token };
  }
  throw new Error("none of the agent's tokens is accepted by the AI listener");
}

const clientOf = (baseUrl: string, key: string) =>
  new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey: key, maxRetries: 0 });

/** Returns the API error that the client throws. */
async function errorOf(work: PromiseLike<unknown>) {
  try {
    await work;
  } catch (error) {
    if (error instanceof OpenAI.APIError) return error;
    throw error;
  }
  throw new Error('the client did not throw');
}

const messages = [{ role: 'user' as const, content: 'hello' }];

describe.each(['a program with an API key', 'an agent'])("OpenAI's client for %s", (who) => {
  const isAgent = who === 'an agent';
  const model = isAgent ? 'auto' : 'openai/gpt-6-luna';
  const provided = isAgent ? 'gpt-4' : 'gpt-6-luna';
  let client: OpenAI;
  let used: number;

  beforeEach(async () => {
    client = isAgent
      ? clientOf(platform.agentsUrl, agentToken)
      : clientOf(platform.backendUrl, apiKey);
    used = (await usageOf(platform, user.id)).length;
  });

  /** Returns the usage of the one call that this test made. */
  async function usage() {
    const rows = await usageOf(platform, user.id);
    expect(rows).toHaveLength(used + 1);
    return rows.at(-1);
  }

  test("OpenAI's client receives a complete answer", async () => {
    const answer = await client.chat.completions.create({ model, messages });
    expect(answer).toMatchObject({ object: 'chat.completion', model: provided });
    expect(answer.choices[0]?.message.content).toBe('hello from openai');
    expect(answer.usage?.total_tokens).toBe(5);
    expect(await usage()).toMatchObject({
      agentId: isAgent ? agentId : null,
      model: `openai/${provided}`,
      inputTokens: 3,
      outputTokens: 2,
    });
    expect(providers.requests.at(-1)?.headers.authorization).toBe(
      `Bearer ${keyOfProvider('openai')}`,
    );
  });

  test("OpenAI's client receives a stream, with its usage if requested", async () => {
    for (const include_usage of [false, true]) {
      used = (await usageOf(platform, user.id)).length;
      const stream = await client.chat.completions.create({
        model,
        messages,
        stream: true,
        stream_options: { include_usage },
      });
      let text = '';
      let total: number | undefined;
      for await (const { choices, usage: said } of stream) {
        text += choices[0]?.delta.content ?? '';
        total = said?.total_tokens ?? total;
      }
      expect([text, total]).toEqual(['hello from openai', include_usage ? 5 : undefined]);
      expect(await usage()).toMatchObject({ inputTokens: 3, outputTokens: 2 });
    }
  });

  test("OpenAI's client can use tools and return their results to the model", async () => {
    const tools = [
      {
        type: 'function' as const,
        function: { name: 'weather', strict: true, parameters: { type: 'object' } },
      },
    ];
    const toolCall = {
      id: 'call_1',
      type: 'function' as const,
      function: { name: 'weather', arguments: '{"city":"Київ"}' },
    };
    const message = { role: 'assistant' as const, content: null, tool_calls: [toolCall] };
    providers.behave('openai', (request, response) =>
      sendJson(response, 200, {
        ...completion('', request.model),
        choices: [{ index: 0, message, finish_reason: 'tool_calls' }],
      }),
    );
    const asked = { model, messages, tools, tool_choice: 'required' as const };
    const first = await client.chat.completions.create(asked);
    expect(first.choices[0]).toMatchObject({ message, finish_reason: 'tool_calls' });

    providers.behave();
    const result = { role: 'tool' as const, tool_call_id: 'call_1', content: 'sunny' };
    const goingOn = [...messages, message, result];
    const second = await client.chat.completions.create({ ...asked, messages: goingOn });
    expect(second.choices[0]?.message.content).toBe('hello from openai');
    expect(providers.requests.at(-1)?.body).toMatchObject({
      messages: goingOn,
      tools,
      tool_choice: 'required',
    });
  });

  test("OpenAI's client receives tool calls piece by piece", async () => {
    const pieces = [
      {
        role: 'assistant',
        tool_calls: [
          {
            index: 0,
            id: 'call_1',
            type: 'function',
            function: { name: 'weather', arguments: '' },
          },
        ],
      },
      { tool_calls: [{ index: 0, function: { arguments: '{"city":' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '"Rome"}' } }] },
    ];
    providers.behave('openai', (request, response) =>
      sendEvents(response, [
        ...pieces.map((piece) => chunk(request.model, piece)),
        chunk(request.model, {}, 'tool_calls'),
        { data: '[DONE]' },
      ]),
    );
    const answer = await client.chat.completions.stream({ model, messages }).finalChatCompletion();
    expect(answer.choices[0]?.message.tool_calls?.[0]).toMatchObject({
      id: 'call_1',
      function: { name: 'weather', arguments: '{"city":"Rome"}' },
    });
  });

  test("OpenAI's client can send images and model-specific fields and receives unknown fields of the answer", async () => {
    const content = [
      { type: 'text' as const, text: 'describe this image' },
      {
        type: 'image_url' as const,
        image_url: { url: 'data:image/png;base64,iVBORw0KGgo=', detail: 'low' as const },
      },
    ];
    providers.behave('openai', (request, response) =>
      sendJson(response, 200, {
        ...completion('a dot', request.model),
        x_new: { deep: [1, null] },
      }),
    );
    const body = {
      model,
      messages: [{ role: 'user' as const, content, name: 'ada' }],
      seed: 7,
      logit_bias: { 50256: -100 },
      response_format: { type: 'json_object' as const },
    };
    const answer = await client.chat.completions.create(body);
    expect(answer).toMatchObject({ x_new: { deep: [1, null] } });
    expect(providers.requests.at(-1)?.body).toEqual({ ...body, model: provided });
  });

  test('accepts parameters that match the default behaviour and refuses unsupported ones', async () => {
    const harmless = { store: false, service_tier: 'auto' as const, metadata: { team: 'blue' } };
    await client.chat.completions.create({ model, messages, ...harmless });
    expect(providers.requests.at(-1)?.body).toEqual({ model: provided, messages });
    providers.asked();
    for (const [param, asked] of [
      ['web_search_options', { web_search_options: {} }],
      ['service_tier', { service_tier: 'priority' as const }],
      ['store', { store: true }],
    ] as const) {
      const error = await errorOf(client.chat.completions.create({ model, messages, ...asked }));
      expect(error).toBeInstanceOf(OpenAI.BadRequestError);
      expect(error).toMatchObject({
        message: `400 ${param} is not supported`,
        type: 'invalid_request_error',
        code: 'unsupported_parameter',
        param,
      });
    }
    expect(providers.asked()).toEqual([]);
  });

  test("OpenAI's client lists the models it may use", async () => {
    const ids = (await client.models.list()).data.map(({ id }) => id);
    if (isAgent) expect(ids).toEqual(['auto']);
    else
      expect(ids.toSorted()).toEqual(['openai/gpt-4', 'openai/gpt-6-luna', 'openai/gpt-6.1-sol']);
  });

  test("OpenAI's client reports a wrong key as such", async () => {
    const stranger = clientOf(isAgent ? platform.agentsUrl : platform.backendUrl, 'wrong');
    for (const work of [
      () => stranger.chat.completions.create({ model, messages }),
      () => stranger.chat.completions.create({ model, messages, stream: true }),
      () => stranger.models.list(),
    ]) {
      const error = await errorOf(work());
      expect(error).toBeInstanceOf(OpenAI.AuthenticationError);
      expect(error).toMatchObject({
        status: 401,
        message: '401 Unauthorized',
        type: 'authentication_error',
        code: null,
      });
    }
  });

  test("OpenAI's client reports an invalid request as such", async () => {
    const error = await errorOf(client.chat.completions.create({ model, messages: [] }));
    expect(error).toBeInstanceOf(OpenAI.BadRequestError);
    expect(error).toMatchObject({
      message: '400 messages is required',
      type: 'invalid_request_error',
    });
  });

  test("OpenAI's client reports a provider's rate limit and a provider's failure as such", async () => {
    providers.behave('openai', fails(429, undefined, { 'retry-after': '7' }));
    const limited = await errorOf(client.chat.completions.create({ model, messages }));
    expect(limited).toBeInstanceOf(OpenAI.RateLimitError);
    expect(limited).toMatchObject({
      message: '429 The AI provider openai limits its requests',
      type: 'rate_limit_error',
    });
    expect(limited.headers?.get('retry-after')).toBe('7');
    providers.behave('openai', fails(500));
    const failed = await errorOf(client.chat.completions.create({ model, messages }));
    expect(failed).toMatchObject({
      status: 502,
      message: '502 The AI provider openai does not answer (overloaded)',
      type: 'server_error',
    });
  });

  test("OpenAI's client reports a stream that broke off", async () => {
    providers.behave('openai', (request, response) => {
      sendEvents(response, [chunk(request.model, { content: 'half' })], false);
      setImmediate(() => response.destroy());
    });
    const stream = await client.chat.completions.create({ model, messages, stream: true });
    const pieces: unknown[] = [];
    const reading = async () => {
      for await (const { choices } of stream) pieces.push(choices[0]?.delta.content);
    };
    expect((await errorOf(reading())).message).toBe('The answer was interrupted: retry');
    expect(pieces).toEqual(['half']);
    await usage();
  });

  test("counts the rest of an answer once after OpenAI's client has disconnected", async () => {
    let goOn: (() => void) | undefined;
    providers.behave('openai', async (request, response) => {
      sendEvents(response, [chunk(request.model, { content: 'once' })], false);
      await new Promise<void>((resolve) => (goOn = resolve));
      const rest = [chunk(request.model, {}, 'stop'), { data: usageChunk(request.model) }];
      for (const { data } of rest) response.write(`data: ${JSON.stringify(data)}\n\n`);
      response.end('data: [DONE]\n\n');
    });
    const stream = await client.chat.completions.create({ model, messages, stream: true });
    for await (const { choices } of stream) {
      expect(choices[0]?.delta.content).toBe('once');
      break;
    }
    goOn?.();
    await expect.poll(async () => (await usageOf(platform, user.id)).length).toBe(used + 1);
    expect(await usage()).toMatchObject({ inputTokens: 3, outputTokens: 2 });
  });
});

describe('a program with an API key', () => {
  const create = (key: string, model = 'openai/gpt-6-luna') =>
    clientOf(platform.backendUrl, key).chat.completions.create({ model, messages });

  test('a program may let the platform choose the model', async () => {
    expect((await create(apiKey, 'auto')).model).toBe('gpt-6-luna');
  });

  test('a program without a plan gets a 402 with the code PLAN_REQUIRED', async () => {
    const error = await errorOf(create(await apiKeyOf(platform, await platform.signUp())));
    expect(error).toMatchObject({
      status: 402,
      message: '402 A paid plan is required',
      type: 'insufficient_quota',
      code: 'PLAN_REQUIRED',
    });
  });

  test("a program that requests a restricted model gets the list of the plan's models", async () => {
    const key = await apiKeyOf(platform, await platform.signUp('label'));
    const error = await errorOf(create(key, 'openai/gpt-4'));
    expect(error).toBeInstanceOf(OpenAI.PermissionDeniedError);
    expect(error).toMatchObject({ type: 'permission_error', code: 'MODEL_RESTRICTED' });
    expect(error.error).toMatchObject({
      allowedModels: expect.arrayContaining(['openai/gpt-6-luna']),
    });
    const listed = await clientOf(platform.backendUrl, key).models.list();
    expect(listed.data.map(({ id }) => id)).toEqual(['openai/gpt-6-luna']);
  });

  test('a program that requests an unknown model gets a 404', async () => {
    const error = await errorOf(create(apiKey, 'openai/gpt-99'));
    expect(error).toBeInstanceOf(OpenAI.NotFoundError);
    expect(error).toMatchObject({ message: '404 Model not found', code: 'model_not_found' });
  });

  test('a program without quota left gets a rate limit error', async () => {
    const owner = await platform.signUp('solo');
    await leave(platform, owner, 0, 2_000_000);
    const error = await errorOf(create(await apiKeyOf(platform, owner)));
    expect(error).toBeInstanceOf(OpenAI.RateLimitError);
    expect(error).toMatchObject({ type: 'rate_limit_error', code: 'QUOTA_EXCEEDED' });
    expect(error.message).toContain('Monthly token quota exceeded for plan "solo".');
    expect((await quotaOf(platform, owner.id)).held).toBe(0);
  });
});

test(
  "an image behind a URL holds quota for the model's whole input",
  { tags: 'attack' },
  async () => {
    const owner = await platform.signUp('solo');
    await leave(platform, owner, 900_000, 2_000_000);
    const client = clientOf(platform.backendUrl, await apiKeyOf(platform, owner));
    const see = (url: string) =>
      client.chat.completions.create({
        model: 'openai/gpt-6-luna',
        messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
      });
    providers.asked();
    const error = await errorOf(see('https://example.com/a-film-of-an-hour'));
    expect(error).toMatchObject({ status: 429, code: 'QUOTA_EXCEEDED' });
    expect(providers.asked()).toEqual([]);
    expect((await see('data:image/png;base64,iVBORw0KGgo=')).choices).toHaveLength(1);
  },
);

test('tokens of the prompt cache are recorded, and cost less', async () => {
  const tokens = { prompt_tokens: 1_000_000, completion_tokens: 0, total_tokens: 1_000_000 };
  const details = { cached_tokens: 900_000, cache_write_tokens: 50_000 };
  providers.behave('openai', ({ model }, response) =>
    sendJson(response, 200, {
      ...completion('hello', model),
      usage: { ...tokens, prompt_tokens_details: details },
    }),
  );
  const client = clientOf(platform.backendUrl, apiKey);
  await client.chat.completions.create({ model: 'openai/gpt-6-luna', messages });
  expect((await usageOf(platform, user.id)).at(-1)).toMatchObject({
    inputTokens: 1_000_000,
    cacheReadTokens: 900_000,
    cacheWriteTokens: 50_000,
    // 50,000 at $0.10 a million, 900,000 at $0.01 and 50,000 at $0.125.
    costUsd: '0.020250',
  });
});

test("an agent whose owner's plan has ended gets a 402", async () => {
  const owner = await platform.signUp('solo');
  const agent = await newAgent(owner, 'claude-opus-4-6');
  await platform.asOwner(
    `UPDATE subscriptions SET status = 'cancelled' WHERE user_id = '${owner.id}'`,
  );
  const client = clientOf(platform.agentsUrl, agent.agentToken);
  const error = await errorOf(client.chat.completions.create({ model: 'auto', messages }));
  expect(error).toMatchObject({ status: 402, code: 'PLAN_REQUIRED' });
});
