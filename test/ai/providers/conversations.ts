import type { ChatBody, ChatMessage } from '../../../src/ai/completion/completion.js';
import type { ProviderName } from '../../../src/ai/completion/provider-names.js';
import { PROVIDER_BASE_URLS } from '../../../src/ai/completion/provider-names.js';
import { withOutputBound } from '../../../src/ai/completion/token-bound.js';
import { adapterOf } from '../../../src/ai/providers/adapters.js';
import { supportedRequest } from '../../../src/ai/routing/supported-request.js';
import { refusal, signed, type ServerName } from '../../support/provider-rules.js';
import type { Random } from '../../support/random.js';

/** Models of each server, one of each kind that has rules of its own. */
export const MODELS: Readonly<Record<ServerName, readonly string[]>> = {
  anthropic: [
    'claude-haiku-5-5',
    'claude-sonnet-5-5',
    'claude-opus-5-5',
    'claude-opus-4-6',
    'claude-sonnet-4-5',
  ],
  gemini: ['gemini-2.5-flash', 'gemini-3.8-flash'],
  groq: ['openai/gpt-oss-120b', 'meta-llama/llama-4-scout-17b-16e-instruct'],
  openai: ['gpt-6-luna', 'gpt-6.1-sol', 'gpt-4'],
  own: ['some-model'],
  mistral: ['mistral-large-latest', 'a-fine-tuned-model'],
  openrouter: [
    ...['openai/gpt-6-luna', 'openai/gpt-oss-120b', 'anthropic/claude-opus-4.6'],
    ...['google/gemini-3.8-flash', 'google/gemini-2.5-flash', 'minimax/minimax-m3'],
  ],
  minimax: ['MiniMax-M3', 'MiniMax-M2.5'],
};

/** Addresses of servers at `OPENAI_BASE_URL`. */
const OWN_SERVERS: Partial<Record<ServerName, string>> = {
  own: 'http://127.0.0.1:1/v1',
  mistral: 'https://api.mistral.ai/v1',
};

// The record's own keys.
export const SERVERS = Object.keys(MODELS) as ServerName[];

/** Returns the reason for which a server refuses what is sent to it for a request. */
export function refusedBy(server: ServerName, model: string, given: ChatBody): string | undefined {
  const name: ProviderName = server === 'own' || server === 'mistral' ? 'openai' : server;
  const baseUrl = OWN_SERVERS[server] ?? PROVIDER_BASE_URLS[name];
  const { stream, ...body } = given;
  const supported = { ...supportedRequest(body), model, ...(stream === true && { stream }) };
  const request = withOutputBound(supported, { maxOutput: 64_000, isHeld: false });
  const wire = adapterOf(name).request({ baseUrl, apiKey: 'key' }, request);
  return refusal(server, model, JSON.parse(wire.body));
}

const PNG = 'data:image/png;base64,iVBORw0KGgo=';
const IMAGES = [
  'data:image/png;base64,',
  PNG,
  'data:image/heic;base64,AAAA',
  'data:image/gif;base64,R0lGODlh',
  'data:image/jpg;base64,/9j/4AAQ',
  'data:image/jpeg;base64,iVBORw0KGgo=',
  'http://example.com/a.png',
];
const TEXTS = ['Hello', ' ', '\n\n', '', 'a\u0000b', 'Grüße 世界', '{"degrees":21}', '[1]'];
const ARGUMENTS = [
  '{"face":"\\ud83d"}',
  '{}',
  '{"city":"Rome"}',
  '',
  ' ',
  '{"city":"Ro',
  '[1]',
  'null',
  '"text"',
];
const IDS = ['call_1', 'functions.now:0', 'toolu_01', '', `fc_${'0af'.repeat(30)}`, 'call_0', 'ü'];
const NAMES = ['now', 'get_weather', 'functions.now', 'multi tool', '', 'n'.repeat(80)];
const SPEAKERS = ['ada', 'Ada L.', 'a/b', 's'.repeat(80)];
const CACHED = { cache_control: { type: 'ephemeral' } };

/** Returns a request with random features, that at least one provider accepts as it is. */
export function randomRequest(random: Random): ChatBody {
  return { ...randomSettings(random), messages: randomMessages(random) };
}

function randomMessages(random: Random): ChatMessage[] {
  const some = (share: number) => random.next() < share;
  const text = () => random.pick(TEXTS);
  const textPart = () => ({ type: 'text', text: text(), ...(some(0.2) && CACHED) });
  const image = () => ({ type: 'image_url', image_url: { url: random.pick(IMAGES) } });
  const refusal = () => ({ type: 'refusal', refusal: text() });
  const texts = () => (some(0.3) ? [textPart(), ...(some(0.5) ? [textPart()] : [])] : text());
  const mixed = () =>
    some(0.3) ? [textPart(), image(), ...(some(0.5) ? [textPart()] : [])] : text();
  const messages: ChatMessage[] = [];
  if (some(0.5)) {
    messages.push({ role: some(0.5) ? 'system' : 'developer', content: texts() });
    if (some(0.3)) messages.push({ role: 'system', content: texts() });
  }
  const turns = 1 + random.below(5);
  for (let turn = 0; turn < turns; turn++) {
    if (some(0.9) || messages.length === 0) {
      if (some(0.1)) messages.push({ role: 'system', content: text() });
      messages.push({
        role: 'user',
        content: mixed(),
        ...(some(0.1) && { name: random.pick(SPEAKERS) }),
      });
    }
    if (turn === turns - 1 && some(0.6)) break;
    const calls = some(0.6) ? randomCalls(random) : undefined;
    messages.push({
      role: 'assistant',
      content: some(0.3) ? null : some(0.1) ? [] : some(0.1) ? [refusal()] : texts(),
      ...(some(0.2) && { refusal: null, function_call: null, name: 'bot' }),
      ...randomReasoning(random),
      ...(calls ? { tool_calls: calls } : some(0.2) && { tool_calls: some(0.5) ? [] : null }),
    });
    // The user may break off a call, or write before its result; the client may send it twice.
    for (const { id } of calls ?? []) {
      if (some(0.1)) continue;
      if (some(0.1)) messages.push({ role: 'user', content: 'Faster!' });
      const result = { role: 'tool', tool_call_id: id, content: mixed() };
      messages.push({ ...result, ...(some(0.2) && { name: random.pick(SPEAKERS) }) });
      if (some(0.1)) messages.push(result);
    }
  }
  // Only images of earlier turns may be of a type that a provider refuses.
  const last = messages.findLastIndex(({ role }) => role === 'assistant');
  return messages.map((message, at) => (at < last ? message : withPngs(message)));
}

const withPngs = (message: ChatMessage): ChatMessage =>
  Array.isArray(message.content)
    ? {
        ...message,
        content: message.content.map((part: object) =>
          'image_url' in part ? { ...part, image_url: { url: PNG } } : part,
        ),
      }
    : message;

function randomCalls(random: Random) {
  return Array.from({ length: 1 + random.below(3) }, (_, index) => {
    const name = random.pick(NAMES);
    const signature = { google: { thought_signature: signed('gemini-3.8-flash', name) } };
    return {
      ...(random.isOneIn(3) && { index }),
      id: random.pick(IDS),
      type: 'function',
      function: { name, arguments: random.pick(ARGUMENTS) },
      // Gemini calls no tool by a name that it refuses.
      ...(/^[\w.]{2,64}$/.test(name) && random.isOneIn(3) && { extra_content: signature }),
    };
  });
}

function randomReasoning(random: Random): object {
  const model = random.pick(MODELS.anthropic);
  const details = [
    [],
    [{ type: 'reasoning.text', text: 'Hm', format: 'MiniMax-response-v1', index: 0 }],
    [{ type: 'reasoning.encrypted', data: 'abc', format: 'openai-responses-v1', index: 0 }],
    [
      {
        type: 'reasoning.encrypted',
        data: 'abc',
        format: 'google-gemini-v1',
        id: 'call_0',
        index: 0,
      },
    ],
    [thought(model, 0)],
    [thought(model, 0), thought(model, 1)],
    [thought(model, 1)],
    [thought(model, 0), thought(model, 2)],
    [{ ...thought(model, 0), signature: '' }],
  ];
  return {
    ...(random.isOneIn(3) && { reasoning_content: 'Let me think.' }),
    ...(random.isOneIn(4) && { reasoning: 'Let me think.' }),
    ...(random.isOneIn(2) && { reasoning_details: random.pick(details) }),
  };
}

const thought = (model: string, index: number) => ({
  type: 'reasoning.text',
  format: 'anthropic-claude-v1',
  id: `anthropic/${model}/${index}/hash`,
  index,
  text: `Thought ${index}`,
  signature: signed(model, `Thought ${index}`),
});

const SCHEMAS: readonly unknown[] = [
  null,
  { $ref: '#/definitions/In', definitions: { In: { type: 'object', properties: { a: {} } } } },
  { type: 'object', properties: { tags: { type: 'array' }, any: { type: 'any' } } },
  { type: 'object', properties: { n: { type: 'number', minimum: 0, exclusiveMinimum: true } } },
  { type: 'object', properties: { pair: { type: 'array', items: [{ type: 'string' }] } } },
  { type: 'object', properties: { text: { type: 'string', required: true, minLength: 1 } } },
  undefined,
  {},
  { type: 'object' },
  { properties: { city: { type: 'string' } } },
  { type: ['object', 'null'], properties: {} },
  { anyOf: [{ type: 'object', properties: { a: {} } }, { properties: { b: {} } }] },
  { type: 'object', properties: { a: {} }, oneOf: [{ required: ['a'] }] },
];

const ANSWER = {
  type: 'object',
  properties: {
    n: { type: 'integer', minimum: 1 },
    list: { type: 'array', items: {}, maxItems: 2 },
  },
};

function randomSettings(random: Random): Omit<ChatBody, 'messages'> {
  const settings: Readonly<Record<string, readonly unknown[]>> = {
    max_tokens: [1, 1_024, 2_000, 16_000, 200_000],
    max_completion_tokens: [1_500, 100_000],
    temperature: [0, 0.7, 1, 2],
    top_p: [0.5, 0.99],
    top_k: [5],
    stop: ['END', ['a', ' ']],
    n: [1],
    seed: [7, 2 ** 40],
    presence_penalty: [0.5],
    frequency_penalty: [-0.5],
    logit_bias: [{ 50256: -100 }],
    verbosity: ['low'],
    prompt_cache_key: ['key', 'k'.repeat(80)],
    user: ['ada', 'ada@example.com', 'u'.repeat(100)],
    response_format: [
      { type: 'json_object' },
      { type: 'json_schema', json_schema: { name: 'a', schema: ANSWER } },
    ],
    reasoning_effort: ['none', 'minimal', 'low', 'high', 'xhigh'],
    tool_choice: ['auto', 'none'],
    parallel_tool_calls: [true, false],
    stream: [true],
    thinking: [
      { type: 'enabled', budget_tokens: 1_024 },
      { type: 'enabled', budget_tokens: 32_000 },
      { type: 'enabled' },
      { type: 'adaptive' },
      { type: 'disabled' },
    ],
  };
  const chosen = Object.entries(settings)
    .filter(() => random.isOneIn(3))
    .map(([field, values]) => [field, random.pick(values)]);
  const body = Object.fromEntries(chosen);
  if (!random.isOneIn(2)) return body;
  const tools = Array.from({ length: random.below(5) }, (_, at) => {
    const parameters = random.pick(SCHEMAS);
    const named = {
      name: `${random.isOneIn(5) ? '1st_' : ''}tool_${random.isOneIn(5) ? 0 : at}`,
      ...(parameters !== undefined && { parameters }),
      ...(random.isOneIn(5) && { description: null }),
      ...(random.isOneIn(5) && { strict: true }),
    };
    return {
      ...(!random.isOneIn(4) && { type: 'function' }),
      function: named,
      ...(random.isOneIn(5) && CACHED),
    };
  });
  const isForced = tools.length > 0 && random.isOneIn(3);
  return { ...body, tools, ...(isForced && { tool_choice: 'required' }) };
}
