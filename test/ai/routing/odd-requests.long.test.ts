import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startAiProviders, type AiProviders } from '../../support/ai-providers.js';
import { call } from '../../support/http.js';
import { testPlatform, type TestPlatform } from '../../support/platform.js';
import { apiKeyOf, quotaOf } from './support.js';

let providers: AiProviders;
let platform: TestPlatform;
let userId: string;
let key: string;

beforeAll(async () => {
  providers = await startAiProviders();
  platform = await testPlatform({
    workers: false,
    dead: ['docker'],
    env: { ...providers.env('openai', 'gemini', 'anthropic'), AI_PROVIDER: 'openai' },
  });
  const user = await platform.signUp('collective');
  userId = user.id;
  key = await apiKeyOf(platform, user);
});
afterEach(() => {
  providers.asked();
  // No request caused an internal error.
  const lines = platform.logged.map((line) => JSON.parse(line));
  expect(lines.filter(({ level }) => level >= 50)).toEqual([]);
});
afterAll(async () => {
  await platform?.close();
  await providers?.close();
});

const complete = (body: unknown) =>
  call(platform.backendUrl, 'POST', '/v1/chat/completions', {
    body,
    headers: { authorization: `Bearer ${key}` },
  });

const hello = { role: 'user', content: 'hello' };
const asking = (more: object) => ({ messages: [hello], ...more });
const saying = (...messages: unknown[]) => ({ messages });
const parts = (...content: unknown[]) => saying({ role: 'user', content });
const calling = (...tool_calls: unknown[]) => saying(hello, { role: 'assistant', tool_calls });

describe("a request invalid in OpenAI's format is a 400 and does not reach a provider", () => {
  test.each<[unknown]>([
    [{}],
    [saying()],
    [saying(null)],
    [saying('hello')],
    [saying({ content: 'hello' })],
    [saying({ role: 'wizard', content: 'hello' })],
    [saying({ role: 'user', content: 7 })],
    [saying({ role: 'user', content: { text: 'hello' } })],
    [parts('hello')],
    [parts({ text: 'hello' })],
    [asking({ model: 5 })],
    [asking({ model: '' })],
    [asking({ stream: 'yes' })],
    [asking({ max_tokens: -1 })],
    [asking({ max_tokens: 0.5 })],
    [asking({ max_completion_tokens: 0 })],
    [asking({ max_completion_tokens: 2_000_000 })],
    [asking({ n: 0 })],
    [asking({ n: 100 })],
  ])('%j', async (body) => {
    const answer = await complete(body);
    expect([answer.status, answer.body.error.type]).toEqual([400, 'invalid_request_error']);
    expect(providers.asked()).toEqual([]);
  });
});

test('text that cannot be stored is passed on, with U+FFFD for half a surrogate pair', async () => {
  const content = String.raw`"a\u0000b\udc00"`;
  const { status } = await complete(`{"messages":[{"role":"user","content":${content}}]}`);
  expect(status).toBe(200);
  expect(providers.requests.at(-1)?.body.messages).toEqual([
    { role: 'user', content: 'a\0b\ufffd' },
  ]);
});

test('several answers are requested where they are given, and are a 400 elsewhere', async () => {
  await complete(asking({ model: 'openai/gpt-6-luna', n: 2 }));
  expect(providers.requests.at(-1)?.body.n).toBe(2);
  providers.asked();
  const refused = await complete(asking({ model: 'anthropic/claude-haiku-5-5', n: 2 }));
  expect(refused).toMatchObject({
    status: 400,
    body: { error: { code: 'unsupported_parameter', param: 'n' } },
  });
  expect(providers.asked()).toEqual([]);
});

describe.each(['openai/gpt-6-luna', 'gemini/gemini-2.5-flash', 'anthropic/claude-haiku-5-5'])(
  '%s answers unusual requests or refuses them with a 4xx, and holds no quota afterwards',
  (model) => {
    test.each<[object]>([
      [saying({ role: 'system', content: 'only' })],
      [saying({ role: 'developer', content: null })],
      [saying({ role: 'assistant', content: 'first' })],
      [saying({ role: 'user' })],
      [saying({ role: 'user', content: '' })],
      [saying({ role: 'user', content: [] })],
      [saying({ role: 'tool', content: 'without a call' })],
      [saying({ role: 'tool', tool_call_id: 7, content: null })],
      [saying({ role: 'function', name: 'f', content: 'x' })],
      [parts({ type: 'unheard of' })],
      [parts({ type: 'text' })],
      [parts({ type: 'text', text: 5 })],
      [parts({ type: 'image_url' })],
      [parts({ type: 'image_url', image_url: 7 })],
      [parts({ type: 'image_url', image_url: { url: 'nonsense' } })],
      [parts({ type: 'image_url', image_url: { url: 'data:,' } })],
      [parts({ type: 'image_url', image_url: { url: 'file:///etc/passwd' } })],
      [parts({ type: 'input_audio', input_audio: null })],
      [calling()],
      [calling(null)],
      [calling('x')],
      [calling({ id: 1, function: null })],
      [calling({ id: 'c', type: 'function', function: { name: 'f', arguments: '{' } })],
      [calling({ id: 'c', type: 'function', function: { name: 'f', arguments: '[]' } })],
      [saying(hello, { role: 'assistant', tool_calls: 'x' })],
      [asking({ tools: 'x' })],
      [asking({ tools: [null] })],
      [asking({ tools: [{ type: 'function' }] })],
      [asking({ tools: [{ type: 'function', function: { name: 'f', parameters: 'x' } }] })],
      [asking({ tool_choice: 7 })],
      [asking({ tool_choice: { type: 'function' } })],
      [asking({ response_format: 'json' })],
      [asking({ response_format: { type: 'json_schema' } })],
      [asking({ stop: 5 })],
      [asking({ stop: [null, ''] })],
      [asking({ temperature: 'warm' })],
      [asking({ temperature: null, top_p: null, n: null, stream: null, max_tokens: null })],
      [asking({ stream_options: 'x' })],
      [asking({ logit_bias: [], seed: 'x', user: 5, metadata: null })],
      [asking({ reasoning_effort: 7 })],
      [asking({ toString: 1, constructor: 2, hasOwnProperty: 3 })],
    ])('%j', async (body) => {
      for (const stream of [false, true]) {
        const answer = await complete({ stream, ...body, model });
        expect([200, 400]).toContain(answer.status);
      }
      expect((await quotaOf(platform, userId)).held).toBe(0);
    });
  },
);
