import { describe, expect, test } from 'vitest';
import type { ChatMessage, ChatRequest } from '../../../src/ai/completion/completion.js';
import { anthropic } from '../../../src/ai/providers/anthropic/anthropic.js';
import type { JsonObject } from '../../../src/lib/json.js';

const PROVIDER = { baseUrl: 'https://api.anthropic.com/v1', apiKey: 'sk-ant-of-this-test' };
const MODEL = 'claude-opus-4-6';
const HELLO: ChatMessage = { role: 'user', content: 'Hello' };

const wire = (request: Partial<ChatRequest> = {}) =>
  anthropic.request(PROVIDER, { model: MODEL, messages: [HELLO], ...request });

function sent(request: Partial<ChatRequest> = {}): ReturnType<typeof JSON.parse> {
  return JSON.parse(wire(request).body);
}

const sentMessages = (...messages: ChatMessage[]) => sent({ messages }).messages;

const refused = expect.objectContaining({ provider: 'anthropic', failure: 'bad_request' });

test('sends a request to the Messages API with the key in the x-api-key header', () => {
  const { url, headers } = wire();
  expect(url).toBe('https://api.anthropic.com/v1/messages');
  expect(headers).toEqual({
    'content-type': 'application/json',
    'anthropic-version': '2023-06-01',
    'x-api-key': 'sk-ant-of-this-test',
  });
});

test('sends no key header if the provider has no API key', () => {
  const { headers } = anthropic.request(
    { ...PROVIDER, apiKey: undefined },
    { model: MODEL, messages: [HELLO] },
  );
  expect(headers).not.toHaveProperty('x-api-key');
});

test('sets max_tokens, which Anthropic requires, in the smallest request', () => {
  expect(sent()).toEqual({ model: MODEL, messages: [HELLO], max_tokens: 16_384 });
});

describe('messages', () => {
  test('system and developer messages move to the system field in their order', () => {
    const body = sent({
      messages: [
        { role: 'system', content: 'Be short.' },
        HELLO,
        { role: 'developer', content: [{ type: 'text', text: 'Be kind.' }] },
      ],
    });
    expect(body.system).toEqual([
      { type: 'text', text: 'Be short.' },
      { type: 'text', text: 'Be kind.' },
    ]);
    expect(body.messages).toEqual([HELLO]);
  });

  test('text of any script is sent unchanged', () => {
    const content = 'Grüße, 世界 👩‍👩‍👧‍👦 \u0000 \u2028 "\\" ' + 'ع'.repeat(3);
    expect(sentMessages({ role: 'user', content })).toEqual([{ role: 'user', content }]);
  });

  test('only the role and content of a message are sent', () => {
    expect(sentMessages({ ...HELLO, name: 'ada' })).toEqual([HELLO]);
  });

  test('cache_control of a text part is passed through', () => {
    const content = [{ type: 'text', text: 'Hi', cache_control: { type: 'ephemeral' } }];
    expect(sentMessages({ role: 'user', content })).toEqual([{ role: 'user', content }]);
  });

  test('empty texts and empty answers, which Anthropic refuses, are left out', () => {
    const messages = sentMessages(
      {
        role: 'user',
        content: [
          { type: 'text', text: '' },
          { type: 'text', text: 'Hello' },
        ],
      },
      { role: 'assistant', content: '' },
      HELLO,
    );
    expect(messages).toEqual([{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }, HELLO]);
  });

  test.each([' ', '\n\n', ''])('blank texts are left out: %j', (blank) => {
    const part = { type: 'text', text: blank };
    const body = sent({
      messages: [
        { role: 'system', content: blank },
        { role: 'user', content: [part, { type: 'text', text: 'Hello' }] },
        { role: 'assistant', content: [part] },
        { role: 'user', content: blank },
      ],
    });
    expect(body).not.toHaveProperty('system');
    expect(body.messages).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'Hello' }] },
      { role: 'user', content: '(no text)' },
    ]);
  });

  test('a request with only instructions gets a turn of the user', () => {
    expect(sentMessages({ role: 'system', content: 'Be short.' })).toEqual([
      { role: 'user', content: '(no text)' },
    ]);
  });

  test('only the last four cache marks are sent, which cover all earlier content', () => {
    const part = (text: string) => ({ type: 'text', text, cache_control: { type: 'ephemeral' } });
    const body = sent({
      messages: [
        { role: 'system', content: [part('a'), part('b')] },
        { role: 'user', content: [part('c'), part('d'), part('e')] },
      ],
    });
    expect(body.system).toEqual([{ type: 'text', text: 'a' }, part('b')]);
    expect(body.messages[0].content).toEqual([part('c'), part('d'), part('e')]);
  });

  test('a conversation that ends with an answer gets the next turn of the user if the model requires one', () => {
    const messages = [HELLO, { role: 'assistant', content: 'So far ' }];
    expect(sent({ messages }).messages.at(-1)).toEqual({ role: 'user', content: 'Continue.' });
    expect(sent({ model: 'claude-sonnet-4-5', messages }).messages.at(-1)).toEqual({
      role: 'assistant',
      content: [{ type: 'text', text: 'So far' }],
    });
  });

  test.each(['data:image/heic;base64,AAAA', 'http://example.com/a.png'])(
    'an image of an earlier turn that Anthropic refuses becomes a text: %s',
    (url) => {
      const image = { type: 'image_url', image_url: { url } };
      const messages = sentMessages(
        { role: 'user', content: [image] },
        { role: 'assistant', content: 'A cat' },
        HELLO,
      );
      expect(messages[0].content[0].text).toMatch(/image was left out/);
    },
  );

  test("an assistant's refusal is sent as text", () => {
    const content = [{ type: 'refusal', refusal: 'I will not.' }];
    expect(sentMessages(HELLO, { role: 'assistant', content })[1]).toEqual({
      role: 'assistant',
      content: [{ type: 'text', text: 'I will not.' }],
    });
  });

  test.each([
    ['a role that is not known', { role: 'narrator', content: 'Once' }],
    ['the role of the old function calls', { role: 'function', name: 'f', content: '1' }],
    ['content that is a number', { role: 'user', content: 7 }],
    ['a part that is no object', { role: 'user', content: ['Hello'] }],
    [
      'a part of its own format',
      {
        role: 'user',
        content: [{ type: 'document', source: { type: 'url', url: 'https://a.b' } }],
      },
    ],
  ])('refuses before sending: %s', (_what, message) => {
    expect(() => sentMessages(message)).toThrow(refused);
  });
});

describe('images', () => {
  const image = (url: unknown, others: object = {}) =>
    sentMessages({
      role: 'user',
      content: [{ type: 'image_url', image_url: { url, detail: 'low' }, ...others }],
    })[0].content[0];

  test('a data: URL becomes a base64 source', () => {
    expect(image('data:image/png;base64,iVBORw0KGgo=')).toEqual({
      type: 'image',
      source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' },
    });
  });

  test('the media type of a data: URL may be in capitals and have parameters', () => {
    expect(image('data:IMAGE/JPEG;name=a.jpg;base64,/9j/').source).toEqual({
      type: 'base64',
      media_type: 'image/jpeg',
      data: '/9j/',
    });
  });

  test('an https: URL becomes a url source, and cache_control is passed through', () => {
    const cache = { cache_control: { type: 'ephemeral' } };
    expect(image('https://example.com/a.png?b=ü', cache)).toEqual({
      type: 'image',
      source: { type: 'url', url: 'https://example.com/a.png?b=ü' },
      ...cache,
    });
  });

  test.each([
    undefined,
    '',
    'a.png',
    'file:///etc/passwd',
    'https://',
    'http://example.com/a.png',
    'data:',
    'data:image/png;base64,',
    'data:image/png,rawtext',
    'data:image/svg+xml;base64,PHN2Zy8+',
    'data:image/png;base64',
    `data:image/png${';a=b'.repeat(100)};base64,iVBORw0KGgo=`,
  ])('refuses the image URL %j before sending', (url) => {
    expect(() => image(url)).toThrow(refused);
  });
});

describe('tools', () => {
  const call = (id: string, name: string, input: string) => ({
    id,
    type: 'function',
    function: { name, arguments: input },
  });
  const WEATHER = {
    type: 'function',
    function: {
      name: 'get_weather',
      description: 'Returns the weather',
      parameters: { type: 'object', properties: { city: { type: 'string' } } },
      strict: true,
    },
  };

  test('functions are declared with their schema', () => {
    expect(sent({ tools: [WEATHER] }).tools).toEqual([
      {
        name: 'get_weather',
        description: 'Returns the weather',
        input_schema: { ...WEATHER.function.parameters, additionalProperties: false },
        strict: true,
      },
    ]);
  });

  test('a function without parameters gets the empty object schema that Anthropic requires', () => {
    const now = { type: 'function', function: { name: 'now', strict: null } };
    expect(sent({ tools: [now] }).tools).toEqual([
      { name: 'now', input_schema: { type: 'object', properties: {} } },
    ]);
  });

  test('refuses Anthropic’s own tools, which cost more than tokens', () => {
    const search = { type: 'web_search_20250305', name: 'web_search', max_uses: 2 };
    expect(() => sent({ tools: [search] })).toThrow(refused);
  });

  test('calls become tool_use parts, and the results of one round become one message', () => {
    const messages = sentMessages(
      HELLO,
      {
        role: 'assistant',
        content: 'Let me look.',
        tool_calls: [call('call_1', 'get_weather', '{"city":"Zürich"}'), call('call_2', 'now', '')],
      },
      { role: 'tool', tool_call_id: 'call_1', content: '21 °C' },
      { role: 'tool', tool_call_id: 'call_2', content: [{ type: 'text', text: '12:00' }] },
      { role: 'user', content: 'And now?' },
    );
    expect(messages).toEqual([
      HELLO,
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'Let me look.' },
          { type: 'tool_use', id: 'call_1', name: 'get_weather', input: { city: 'Zürich' } },
          { type: 'tool_use', id: 'call_2', name: 'now', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'call_1', content: '21 °C' },
          {
            type: 'tool_result',
            tool_use_id: 'call_2',
            content: [{ type: 'text', text: '12:00' }],
          },
        ],
      },
      { role: 'user', content: 'And now?' },
    ]);
  });

  test('results of two rounds stay in separate messages', () => {
    const round = (id: string): ChatMessage[] => [
      { role: 'assistant', content: null, tool_calls: [call(id, 'now', '{}')] },
      { role: 'tool', tool_call_id: id, content: id },
    ];
    const messages = sentMessages(HELLO, ...round('a'), ...round('b'));
    expect(messages.map(({ role }: ChatMessage) => role)).toEqual([
      'user',
      'assistant',
      'user',
      'assistant',
      'user',
    ]);
  });

  test('call ids of another provider’s model are rewritten to characters that Anthropic accepts', () => {
    const messages = sentMessages(
      HELLO,
      { role: 'assistant', tool_calls: [call('functions.now:0', 'now', '{}')] },
      { role: 'tool', tool_call_id: 'functions.now:0', content: '12:00' },
    );
    expect(messages[1].content[0].id).toBe('functions_now_0');
    expect(messages[2].content[0].tool_use_id).toBe('functions_now_0');
  });

  test.each(['{"city":', '[1]', '"text"', 'null'])(
    'arguments that are not a JSON object are sent as a value: %s',
    (json) => {
      const messages = sentMessages(
        HELLO,
        { role: 'assistant', tool_calls: [call('call_1', 'f', json)] },
        { role: 'tool', tool_call_id: 'call_1', content: 'x' },
      );
      expect(messages[1].content[0].input).toEqual({ invalid_json: json });
    },
  );

  test('a call id that an earlier call has is replaced, also in its result', () => {
    const round = (result: string): ChatMessage[] => [
      { role: 'assistant', tool_calls: [call('call_0', 'f', '{}')] },
      { role: 'tool', tool_call_id: 'call_0', content: result },
    ];
    const messages = sentMessages(HELLO, ...round('first'), ...round('second'));
    const [, first, , second, result] = messages;
    expect(first.content[0].id).toBe('call_0');
    expect(second.content[0].id).toMatch(/^call_[0-9a-f]{32}$/);
    expect(result.content[0].tool_use_id).toBe(second.content[0].id);
  });

  test.each([
    [{}, { type: 'object', properties: {} }],
    [{ properties: { a: {} } }, { type: 'object', properties: { a: {} } }],
    [
      { oneOf: [{ properties: { a: {} }, required: ['a'] }, { properties: { b: {} } }] },
      { type: 'object', properties: { a: {}, b: {} } },
    ],
  ])('the parameters %j are declared with the type object', (parameters, schema) => {
    const tools = [{ type: 'function', function: { name: 'f', parameters } }];
    expect(sent({ tools }).tools[0].input_schema).toEqual(schema);
  });

  test('the tools of earlier calls are declared, without further calls, if the request has none', () => {
    const body = sent({
      messages: [
        HELLO,
        { role: 'assistant', tool_calls: [call('a', 'f', '{}'), call('b', 'f', '{}')] },
        { role: 'tool', tool_call_id: 'a', content: 'x' },
        { role: 'tool', tool_call_id: 'b', content: 'x' },
      ],
    });
    expect(body.tools).toEqual([{ name: 'f', input_schema: { type: 'object', properties: {} } }]);
    expect(body.tool_choice).toEqual({ type: 'none' });
  });

  test.each([
    ['calls that are no list', { role: 'assistant', tool_calls: 'f' }],
    ['a call without a function', { role: 'assistant', tool_calls: [{ id: 'call_1' }] }],
    ['a result of no call', { role: 'tool', content: '1' }],
  ])('refuses %s', (_what, message) => {
    expect(() => sentMessages(HELLO, message)).toThrow(refused);
  });

  test.each([
    ['auto', { type: 'auto' }],
    ['none', { type: 'none' }],
    ['required', { type: 'any' }],
    [
      { type: 'function', function: { name: 'get_weather' } },
      { type: 'tool', name: 'get_weather' },
    ],
  ])('the tool choice %j is sent as %j', (choice, said) => {
    expect(sent({ tools: [WEATHER], tool_choice: choice }).tool_choice).toEqual(said);
  });

  test('parallel_tool_calls: false is sent as part of the tool choice', () => {
    const one = (choice?: string) =>
      sent({ tools: [WEATHER], tool_choice: choice, parallel_tool_calls: false }).tool_choice;
    expect(one()).toEqual({ type: 'auto', disable_parallel_tool_use: true });
    expect(one('required')).toEqual({ type: 'any', disable_parallel_tool_use: true });
    expect(one('none')).toEqual({ type: 'none' });
  });

  test('sends no tool choice without tools', () => {
    const body = sent({ tools: [], tool_choice: 'auto', parallel_tool_calls: false });
    expect(body).not.toHaveProperty('tools');
    expect(body).not.toHaveProperty('tool_choice');
  });

  test.each([{ tools: 'f' }, { tools: ['f'] }, { tools: [{ type: 'function' }] }])(
    'refuses malformed tool declarations: %j',
    (request) => {
      expect(() => sent(request)).toThrow(refused);
    },
  );
});

describe('settings', () => {
  test('max_completion_tokens takes precedence over max_tokens', () => {
    expect(sent({ max_tokens: 10 }).max_tokens).toBe(10);
    expect(sent({ max_tokens: 10, max_completion_tokens: 20 }).max_tokens).toBe(20);
    expect(sent({ max_completion_tokens: 20 })).not.toHaveProperty('max_completion_tokens');
  });

  test.each([
    ['END', ['END']],
    [
      ['END', ' \n', '.'],
      ['END', '.'],
    ],
  ])('stop %j is sent as %j', (stop, sequences) => {
    expect(sent({ stop }).stop_sequences).toEqual(sequences);
  });

  test.each([null, [], '\n'])('stop %j is not sent', (stop) => {
    expect(sent({ stop })).not.toHaveProperty('stop_sequences');
  });

  test('the temperature is capped at Anthropic’s maximum and takes precedence over top_p', () => {
    expect(sent({ temperature: 0.3 })).toMatchObject({ temperature: 0.3 });
    expect(sent({ temperature: 1.7 })).toMatchObject({ temperature: 1 });
    expect(sent({ top_p: 0.9 })).toMatchObject({ top_p: 0.9 });
    expect(sent({ temperature: 0, top_p: 0.9 })).toMatchObject({ temperature: 0 });
    expect(sent({ temperature: 0, top_p: 0.9 })).not.toHaveProperty('top_p');
    expect(sent({ temperature: null })).not.toHaveProperty('temperature');
  });

  test.each([
    ['claude-3-5-sonnet-20241022', true],
    ['claude-opus-4-20250514', true],
    ['claude-sonnet-4-5-20250929', true],
    ['claude-opus-4-6', true],
    ['claude-opus-4-7', false],
    ['claude-sonnet-5', false],
    ['claude-haiku-5-5-20260801', false],
    ['a-model-of-their-own', true],
  ])('%s accepts a temperature: %j', (model, taken) => {
    expect('temperature' in sent({ model, temperature: 0.5 })).toBe(taken);
    expect('top_p' in sent({ model, top_p: 0.5 })).toBe(taken);
  });

  test('the user is sent in the metadata unless the metadata already names one', () => {
    expect(sent({ user: 'u-1' }).metadata).toEqual({ user_id: 'u-1' });
    expect(sent({ user: 'u-1', metadata: { user_id: 'u-2' } }).metadata).toEqual({
      user_id: 'u-2',
    });
    expect(sent({ metadata: { team: 'blue' } })).not.toHaveProperty('metadata');
  });

  test.each(['ada@example.com', '+39 06 1234567', 'u'.repeat(300)])(
    'a user whom Anthropic refuses as an id is sent as a hash: %s',
    (user) => {
      expect(sent({ user }).metadata).toEqual({ user_id: expect.stringMatching(/^[0-9a-f]{64}$/) });
      expect(sent({ user }).metadata).toEqual(sent({ user }).metadata);
    },
  );

  test('an answer in any JSON is requested in a message, unless one already requests it', () => {
    const asked = { response_format: { type: 'json_object' } };
    expect(sent(asked).system).toEqual([{ type: 'text', text: 'Answer in JSON.' }]);
    const messages = [{ role: 'user', content: 'Hello as json' }];
    expect(sent({ ...asked, messages })).not.toHaveProperty('system');
  });

  test('stream is sent only if it is true', () => {
    expect(sent({ stream: true }).stream).toBe(true);
    expect(sent({ stream: false })).not.toHaveProperty('stream');
  });

  test('a JSON schema of the answer is sent in output_config beside its other settings', () => {
    const schema = { type: 'object', properties: {}, additionalProperties: false };
    const format = { type: 'json_schema', json_schema: { name: 'a', strict: true, schema } };
    expect(sent({ response_format: format, output_config: { effort: 'low' } })).toMatchObject({
      output_config: { effort: 'low', format: { type: 'json_schema', schema } },
    });
    expect(sent({ response_format: { type: 'json_object' } })).not.toHaveProperty('output_config');
  });

  test('a schema that the model must follow is sent without what Anthropic refuses', () => {
    const schema = {
      type: 'object',
      properties: {
        n: { type: 'integer', minimum: 1 },
        minimum: { type: 'string', maxLength: 5 },
        list: { type: 'array', minItems: 2, items: { type: 'object', properties: {} } },
      },
    };
    const strict = {
      type: 'object',
      properties: {
        n: { type: 'integer' },
        minimum: { type: 'string' },
        list: {
          type: 'array',
          items: { type: 'object', properties: {}, additionalProperties: false },
        },
      },
      additionalProperties: false,
    };
    const format = { type: 'json_schema', json_schema: { name: 'a', schema } };
    expect(sent({ response_format: format }).output_config.format.schema).toEqual(strict);
    const declared = { type: 'function', function: { name: 'f', parameters: schema } };
    const tools = [declared, { ...declared, function: { ...declared.function, strict: true } }];
    expect(sent({ tools }).tools.map((tool: JsonObject) => tool.input_schema)).toEqual([
      schema,
      strict,
    ]);
  });

  test("Anthropic's own chat settings are passed through, unsupported fields are not", () => {
    const own = { top_k: 5, output_config: { effort: 'low' } };
    const more = {
      mcp_servers: [{}],
      container: 'c',
      inference_geo: 'us',
      speed: 'fast',
      system: 'x',
    };
    expect(sent({ ...own, ...more, service_tier: 'standard_only' })).toEqual({
      model: MODEL,
      messages: [HELLO],
      max_tokens: 16_384,
      ...own,
    });
  });

  test('fields that only OpenAI supports are left out', () => {
    const theirs = {
      audio: {},
      frequency_penalty: 1,
      logit_bias: {},
      logprobs: true,
      modalities: ['text'],
      n: 1,
      prediction: {},
      presence_penalty: 1,
      prompt_cache_key: 'k',
      reasoning_effort: 'low',
      response_format: { type: 'text' },
      safety_identifier: 's',
      seed: 1,
      service_tier: 'flex',
      store: true,
      stream_options: { include_usage: true },
      top_logprobs: 2,
      verbosity: 'low',
      web_search_options: {},
    };
    expect(sent(theirs)).toEqual({ model: MODEL, messages: [HELLO], max_tokens: 16_384 });
  });
});

describe('thinking', () => {
  const ENABLED = { type: 'enabled', budget_tokens: 2_048 };
  const tools = [{ type: 'function', function: { name: 'f' } }];
  const detail = (model: string, index = 0) => ({
    type: 'reasoning.text',
    format: 'anthropic-claude-v1',
    id: `anthropic/${model}/${index}/hash`,
    index,
    text: 'Hm.',
    signature: 'c2ln',
  });
  const toolTurn = (...reasoning_details: object[]): ChatMessage[] => [
    HELLO,
    {
      role: 'assistant',
      content: null,
      reasoning_details,
      tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'a', content: 'x' },
  ];
  const BLOCK = { type: 'thinking', thinking: 'Hm.', signature: 'c2ln' };

  test('the limit of the answer is above the budget', () => {
    const bound = (more: object) => {
      const { thinking, max_tokens: most } = sent({ thinking: ENABLED, ...more });
      return [thinking?.budget_tokens, most];
    };
    expect(bound({})).toEqual([2_048, 16_384 + 2_048]);
    expect(bound({ max_tokens: 3_000 })).toEqual([2_048, 3_000]);
    expect(bound({ max_tokens: 2_000 })).toEqual([1_500, 2_000]);
    expect(bound({ max_tokens: 1_024 })).toEqual([undefined, 1_024]);
  });

  test('a thinking model gets no temperature and no top_k', () => {
    const body = sent({ thinking: ENABLED, temperature: 0.5, top_k: 5, top_p: 0.5 });
    expect(body.thinking).toEqual(ENABLED);
    for (const field of ['temperature', 'top_k', 'top_p']) expect(body).not.toHaveProperty(field);
  });

  test("the model's own thinking is sent back with the result of its call", () => {
    const body = sent({ thinking: ENABLED, tools, messages: toolTurn(detail(MODEL)) });
    expect(body.thinking).toEqual(ENABLED);
    expect(body.messages[1].content[0]).toEqual(BLOCK);
  });

  test.each([
    ['without thinking', []],
    ["with another model's thinking", [detail('claude-sonnet-4-5')]],
    ['with thinking that began later', [detail(MODEL, 1)]],
    ['with thinking after a text', [detail(MODEL, 0), detail(MODEL, 2)]],
    ['with thinking from OpenRouter', [{ ...detail(MODEL), id: null }]],
    ['without a signature', [{ ...detail(MODEL), signature: '' }]],
  ])('a turn after a call %s has no thinking', (_what, details) => {
    const body = sent({ thinking: ENABLED, tools, messages: toolTurn(...details) });
    expect(body).not.toHaveProperty('thinking');
    expect(body.messages[1].content.map(({ type }: { type: string }) => type)).toEqual([
      'tool_use',
    ]);
  });

  test('an answer that the client began is continued without thinking', () => {
    const messages = [HELLO, { role: 'assistant', content: 'So' }];
    const begun = { thinking: ENABLED, model: 'claude-sonnet-4-5', messages };
    expect(sent(begun)).not.toHaveProperty('thinking');
    expect(sent({ ...begun, messages: [...messages, HELLO] }).thinking).toEqual(ENABLED);
  });

  test('a forced call disables thinking, and a model that always thinks gets no forced call', () => {
    const asked = { thinking: ENABLED, tools, tool_choice: 'required' };
    expect(sent(asked)).not.toHaveProperty('thinking');
    expect(sent(asked).tool_choice).toEqual({ type: 'any' });
    expect(sent({ ...asked, model: 'claude-opus-5-5' }).tool_choice).toEqual({ type: 'auto' });
  });

  test.each([
    ['claude-3-5-sonnet-20241022', ENABLED, undefined],
    ['claude-sonnet-4-5', ENABLED, ENABLED],
    ['claude-sonnet-4-5', { type: 'adaptive' }, { type: 'enabled', budget_tokens: 12_288 }],
    ['claude-opus-4-6', { type: 'adaptive' }, { type: 'adaptive' }],
    ['claude-opus-4-7', ENABLED, { type: 'adaptive' }],
    ['claude-haiku-5-5', { type: 'disabled' }, { type: 'disabled' }],
    ['claude-opus-5-5', { type: 'disabled' }, undefined],
    [
      'claude-opus-5-5',
      { ...ENABLED, display: 'omitted' },
      { type: 'adaptive', display: 'omitted' },
    ],
  ])('%s receives the setting %j as %j', (model, thinking, setting) => {
    expect(sent({ model, thinking }).thinking).toEqual(setting);
  });

  test.each([
    ['claude-sonnet-5', undefined],
    ['claude-opus-5-5', { block_binding: { prefix_mismatch_behavior: 'drop_block' } }],
  ])(
    '%s, which thinks by default, receives its thinking back with the setting %j',
    (model, own) => {
      const asked = { model, tools, messages: toolTurn(detail(model)) };
      const { messages, thinking } = sent(asked);
      expect(messages[1].content[0]).toEqual(BLOCK);
      expect(thinking).toEqual(own && { type: 'adaptive', ...own });
      const beta = own && 'thinking-binding-controls-2026-08-01';
      expect(wire(asked).headers['anthropic-beta']).toBe(beta);
    },
  );

  test('thinking is not sent back to a model whose thinking is disabled', () => {
    const model = 'claude-sonnet-5';
    const asked = { model, tools, messages: toolTurn(detail(model)) };
    const { messages } = sent({ ...asked, thinking: { type: 'disabled' } });
    expect(messages[1].content).toHaveLength(1);
  });
});

test('leaves the original request unchanged', () => {
  const request: ChatRequest = Object.freeze({
    model: MODEL,
    messages: Object.freeze([Object.freeze({ ...HELLO })]),
    stop: Object.freeze(['a']),
    temperature: 2,
  });
  expect(() => anthropic.request(PROVIDER, request)).not.toThrow();
});
