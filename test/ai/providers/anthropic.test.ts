import { describe, expect, test } from 'vitest';
import type { ChatRequest } from '../../../src/ai/completion/completion.js';
import { ProviderError } from '../../../src/ai/completion/provider-error.js';
import { anthropic } from '../../../src/ai/providers/anthropic/anthropic.js';

const REQUEST: ChatRequest = {
  model: 'claude-opus-4-6',
  messages: [{ role: 'user', content: 'Hello' }],
};

const USAGE = {
  input_tokens: 20,
  cache_creation_input_tokens: 300,
  cache_read_input_tokens: 1000,
  cache_creation: { ephemeral_5m_input_tokens: 300, ephemeral_1h_input_tokens: 0 },
  output_tokens: 30,
  service_tier: 'standard',
};

/** A message as returned by the Messages API. */
const message = (content: readonly object[], others: object = {}) => ({
  id: 'msg_013Zva2CMHLNnXjNJJKqJ2EF',
  type: 'message',
  role: 'assistant',
  model: 'claude-opus-4-6',
  content,
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: USAGE,
  ...others,
});

const errorBody = (type: string, details?: object) => ({
  type: 'error',
  error: { type, message: 'The key sk-ant-secret is not yours', ...(details && { details }) },
  request_id: 'req_011CSHoEeqs5C35K2UUqR7Fy',
});

const answer = (body: unknown) => anthropic.readAnswer(JSON.stringify(body), REQUEST);
const answerJson = (body: unknown): ReturnType<typeof JSON.parse> => JSON.parse(answer(body).json);

function failureOf(work: () => unknown): ProviderError {
  try {
    work();
  } catch (error) {
    if (error instanceof ProviderError) return error;
    throw error;
  }
  throw new Error('the call did not fail');
}

describe('answer', () => {
  test('an answer becomes a chat completion with its text', () => {
    const body = message([
      { type: 'text', text: 'Grüezi, ' },
      { type: 'text', text: '世界 👋', citations: null },
    ]);
    const { content, usage } = answer(body);
    expect(content).toBe('Grüezi, 世界 👋');
    expect(usage).toEqual({
      inputTokens: 1320,
      cacheReadTokens: 1000,
      cacheWriteTokens: 300,
      outputTokens: 30,
    });
    expect(answerJson(body)).toEqual({
      id: 'msg_013Zva2CMHLNnXjNJJKqJ2EF',
      object: 'chat.completion',
      created: expect.any(Number),
      model: 'claude-opus-4-6',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Grüezi, 世界 👋', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: {
        prompt_tokens: 1320,
        completion_tokens: 30,
        total_tokens: 1350,
        prompt_tokens_details: { cached_tokens: 1000, cache_write_tokens: 300 },
      },
    });
  });

  test('an answer with tool calls keeps them and its thinking, and drops server-side tool use', () => {
    const body = message(
      [
        { type: 'thinking', thinking: 'Hm.', signature: 'EqQB' },
        { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'q' } },
        { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] },
        { type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: { city: 'Zürich' } },
        { type: 'tool_use', id: 'toolu_2', name: 'now', input: {} },
      ],
      { stop_reason: 'tool_use' },
    );
    expect(answer(body).content).toBe('');
    expect(answerJson(body).choices[0]).toMatchObject({
      message: {
        content: null,
        tool_calls: [
          {
            id: 'toolu_1',
            type: 'function',
            function: { name: 'get_weather', arguments: '{"city":"Zürich"}' },
          },
          { id: 'toolu_2', type: 'function', function: { name: 'now', arguments: '{}' } },
        ],
        reasoning_details: [
          {
            type: 'reasoning.text',
            format: 'anthropic-claude-v1',
            id: 'anthropic/claude-opus-4-6/0/0f-d9bnvrfH_',
            index: 0,
            text: 'Hm.',
            signature: 'EqQB',
          },
        ],
      },
      finish_reason: 'tool_calls',
    });
  });

  test.each([
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['tool_use', 'tool_calls'],
    ['refusal', 'content_filter'],
    ['something_new', 'stop'],
  ])('the stop reason %s becomes the finish reason %s', (reason, said) => {
    const body = message([{ type: 'text', text: 'a' }], { stop_reason: reason });
    expect(answerJson(body).choices[0].finish_reason).toBe(said);
  });

  test('a refusal has no text, and its tokens are counted', () => {
    const body = message([], {
      stop_reason: 'refusal',
      stop_details: { type: 'refusal', category: 'cyber', explanation: null },
    });
    expect(answer(body)).toMatchObject({ content: '', usage: { outputTokens: 30 } });
    expect(answerJson(body).choices[0].message.content).toBe('');
  });

  test('usage without prompt cache counts is read correctly', () => {
    const usage = { input_tokens: 7, cache_read_input_tokens: null, output_tokens: 2 };
    expect(answer(message([], { usage })).usage).toEqual({ inputTokens: 7, outputTokens: 2 });
  });

  test.each([
    ['overloaded_error', 'overloaded'],
    ['rate_limit_error', 'rate_limited'],
    ['of_a_new_kind', 'garbage'],
  ])('an answer that contains the error %s fails as %s', (type, failure) => {
    expect(failureOf(() => answer(errorBody(type)))).toMatchObject({ failure });
  });

  test.each([
    ['', 'nothing'],
    ['<html>502</html>', 'a page'],
    [JSON.stringify(message([])).slice(0, -9), 'half a message'],
    ['null', 'null'],
    ['{}', 'an empty object'],
    ['{"choices":[{"message":{"content":"a"}}]}', 'another format'],
    [JSON.stringify(message([{ type: 'text' }])), 'a text without text'],
    [JSON.stringify(message([{ type: 'tool_use', input: {} }])), 'a call without a name'],
    [JSON.stringify(message([], { usage: { input_tokens: -1 } })), 'less than no tokens'],
  ])('%s is garbage: %s', (text) => {
    expect(failureOf(() => anthropic.readAnswer(text, REQUEST))).toMatchObject({
      provider: 'anthropic',
      failure: 'garbage',
    });
  });
});

describe('stream', () => {
  const start = (usage: object = { ...USAGE, output_tokens: 1 }) => ({
    type: 'message_start',
    message: message([], { stop_reason: null, usage }),
  });
  const blockStart = (index: number, content_block: object) => ({
    type: 'content_block_start',
    index,
    content_block,
  });
  const delta = (index: number, said: object) => ({
    type: 'content_block_delta',
    index,
    delta: said,
  });
  const text = (index: number, said: string) => delta(index, { type: 'text_delta', text: said });
  const json = (index: number, said: string) =>
    delta(index, { type: 'input_json_delta', partial_json: said });
  const blockStop = (index: number) => ({ type: 'content_block_stop', index });
  const messageDelta = (reason: string, usage: object = { output_tokens: 15 }) => ({
    type: 'message_delta',
    delta: { stop_reason: reason, stop_sequence: null },
    usage,
  });
  const ping = { type: 'ping' };
  const stop = { type: 'message_stop' };

  const HELLO = [
    start(),
    blockStart(0, { type: 'text', text: '' }),
    ping,
    text(0, 'Grüezi, '),
    text(0, '世界 👋'),
    blockStop(0),
    messageDelta('end_turn'),
    stop,
  ];
  const TOOLS = [
    start(),
    blockStart(0, { type: 'thinking', thinking: '', signature: '' }),
    delta(0, { type: 'thinking_delta', thinking: 'Hm.' }),
    delta(0, { type: 'signature_delta', signature: 'EqQB' }),
    blockStop(0),
    blockStart(1, { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} }),
    json(1, '{"query":"q"}'),
    blockStop(1),
    blockStart(2, { type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: {} }),
    json(2, ''),
    json(2, '{"city": "Zü'),
    json(2, 'rich"}'),
    blockStop(2),
    blockStart(3, { type: 'tool_use', id: 'toolu_2', name: 'now', input: {} }),
    json(3, ''),
    blockStop(3),
    messageDelta('tool_use', { output_tokens: 89 }),
    stop,
  ];

  type Chunk = ReturnType<typeof JSON.parse>;

  function open(request: Partial<ChatRequest> = {}) {
    const stream = anthropic.openStream({ ...REQUEST, stream: true, ...request });
    const read = (event: { readonly type: string }): Chunk[] =>
      stream
        .read({ event: event.type, data: JSON.stringify(event) })
        .map((chunk) => JSON.parse(chunk));
    return { stream, read };
  }

  function readAll(events: readonly { readonly type: string }[], request?: Partial<ChatRequest>) {
    const { stream, read } = open(request);
    return { stream, chunks: events.flatMap(read) };
  }

  test('a stream becomes chat completion chunks', () => {
    const { chunks, stream } = readAll(HELLO);
    const chunk = (said: object, reason: string | null = null) => ({
      id: 'msg_013Zva2CMHLNnXjNJJKqJ2EF',
      object: 'chat.completion.chunk',
      created: expect.any(Number),
      model: 'claude-opus-4-6',
      choices: [{ index: 0, delta: said, logprobs: null, finish_reason: reason }],
    });
    expect(chunks).toEqual([
      chunk({ role: 'assistant', content: '' }),
      chunk({ content: 'Grüezi, ' }),
      chunk({ content: '世界 👋' }),
      chunk({}, 'stop'),
    ]);
    expect(stream).toMatchObject({ ended: true, usage: { inputTokens: 1320, outputTokens: 15 } });
  });

  test('a stream ends with the usage if it is requested', () => {
    const { chunks } = readAll(HELLO, { stream_options: { include_usage: true } });
    expect(chunks.at(-1)).toMatchObject({
      choices: [],
      usage: { prompt_tokens: 1320, completion_tokens: 15, total_tokens: 1335 },
    });
    expect(chunks.slice(0, -1).map(({ usage }) => usage)).toEqual([null, null, null, null]);
  });

  test('a stream passes tool calls piece by piece, after the thinking as a whole', () => {
    const { chunks } = readAll(TOOLS);
    const begun = (index: number, id: string, name: string) => ({
      tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }],
    });
    const more = (index: number, said: string) => ({
      tool_calls: [{ index, function: { arguments: said } }],
    });
    expect(chunks.map(({ choices }) => choices[0].delta)).toEqual([
      { role: 'assistant', content: '' },
      {
        reasoning_details: [
          {
            type: 'reasoning.text',
            format: 'anthropic-claude-v1',
            id: 'anthropic/claude-opus-4-6/0/0f-d9bnvrfH_',
            index: 0,
            text: 'Hm.',
            signature: 'EqQB',
          },
        ],
      },
      begun(0, 'toolu_1', 'get_weather'),
      more(0, '{"city": "Zü'),
      more(0, 'rich"}'),
      begun(1, 'toolu_2', 'now'),
      more(1, '{}'),
      {},
    ]);
    expect(chunks.at(-1).choices[0].finish_reason).toBe('tool_calls');
  });

  test('a stream counts the bytes of texts, thinking and calls', () => {
    expect(readAll(HELLO).stream.bytes).toBe(Buffer.byteLength('Grüezi, 世界 👋'));
    const said = 'Hm.web_search{"query":"q"}get_weather{"city": "Zürich"}now';
    expect(readAll(TOOLS).stream.bytes).toBe(Buffer.byteLength(said));
  });

  test('a stream has a usage from its first event on', () => {
    const { stream, read } = open();
    expect(stream.usage).toBeUndefined();
    read(start());
    expect(stream.usage).toMatchObject({ inputTokens: 1320, outputTokens: 1 });
  });

  test('a stream counts the input tokens that server-side tools add later', () => {
    const events = [start(), messageDelta('end_turn', { ...USAGE, input_tokens: 5000 }), stop];
    expect(readAll(events).stream.usage).toMatchObject({ inputTokens: 6300, outputTokens: 30 });
  });

  test('a stream that breaks off is not ended, and its usage is available', () => {
    for (let length = 1; length < HELLO.length; length++) {
      const { stream } = readAll(HELLO.slice(0, length));
      expect(stream).toMatchObject({ ended: false, usage: { inputTokens: 1320 } });
    }
  });

  test('a refusal in the middle of a stream ends with content_filter', () => {
    const { chunks } = readAll([...HELLO.slice(0, 5), messageDelta('refusal'), stop]);
    expect(chunks.at(-1).choices[0].finish_reason).toBe('content_filter');
  });

  test('a stream ignores unknown events and deltas', () => {
    const { chunks } = readAll([
      start(),
      { type: 'of_a_new_kind' },
      blockStart(0, { type: 'of_a_new_kind', text: 'hidden' }),
      delta(0, { type: 'of_a_new_kind', text: 'hidden' }),
      blockStop(0),
      ...HELLO.slice(1),
    ]);
    expect(JSON.stringify(chunks)).not.toContain('hidden');
    expect(chunks).toHaveLength(4);
  });

  test.each([
    ['overloaded_error', 'overloaded'],
    ['api_error', 'overloaded'],
    ['rate_limit_error', 'rate_limited'],
    ['timeout_error', 'timeout'],
    ['of_a_new_kind', 'garbage'],
  ])('a stream with the error %s fails as %s', (type, failure) => {
    const { stream, read } = open();
    HELLO.slice(0, 4).forEach(read);
    expect(failureOf(() => read(errorBody(type)))).toMatchObject({ failure });
    expect(stream.ended).toBe(false);
  });

  test.each(['', '[DONE]', '<html>', 'null', '[]', '{}', '{"type":7}', '{"type":"message_start"}'])(
    'a stream with the data %j is garbage',
    (data) => {
      const { stream } = open();
      expect(failureOf(() => stream.read({ data }))).toMatchObject({ failure: 'garbage' });
    },
  );

  test('a stream that begins in the middle or continues after its end is garbage', () => {
    expect(failureOf(() => open().read(text(0, 'a')))).toMatchObject({ failure: 'garbage' });
    expect(failureOf(() => open().read(stop))).toMatchObject({ failure: 'garbage' });
    const over = [...HELLO, text(0, 'a')];
    expect(failureOf(() => readAll(over))).toMatchObject({ failure: 'garbage' });
  });

  test('a stream with a call that has no name is garbage', () => {
    const events = [start(), blockStart(0, { type: 'tool_use', id: 'toolu_1', input: {} })];
    expect(failureOf(() => readAll(events))).toMatchObject({ failure: 'garbage' });
  });
});

describe('error', () => {
  const read = (status: number, body: unknown, headers: Record<string, string> = {}) =>
    anthropic.readError(
      status,
      new Headers(headers),
      typeof body === 'string' ? body : JSON.stringify(body),
    );

  test.each([
    [400, 'invalid_request_error', 'bad_request'],
    [401, 'authentication_error', 'bad_key'],
    [402, 'billing_error', 'bad_key'],
    [403, 'permission_error', 'bad_key'],
    [404, 'not_found_error', 'unknown_model'],
    [413, 'request_too_large', 'too_long'],
    [429, 'rate_limit_error', 'rate_limited'],
    [500, 'api_error', 'overloaded'],
    [504, 'timeout_error', 'timeout'],
    [529, 'overloaded_error', 'overloaded'],
  ] as const)('status %i with %s is %s, by its type or its status', (status, type, failure) => {
    const expected = { provider: 'anthropic', failure, status };
    expect(read(status, errorBody(type))).toMatchObject(expected);
    expect(read(200, errorBody(type))).toMatchObject({ failure });
    expect(read(status, JSON.stringify(errorBody(type)).slice(0, 20))).toMatchObject(expected);
    expect(read(status, '<html>')).toMatchObject(expected);
    expect(read(status, '')).toMatchObject(expected);
  });

  test.each([
    [502, 'overloaded'],
    [422, 'bad_request'],
    [408, 'timeout'],
    [302, 'garbage'],
  ])('status %i without a body is %s', (status, failure) => {
    expect(read(status, '')).toMatchObject({ failure, status });
  });

  test('an account over its spend limit or on hold is reported as bad_key', () => {
    const spent = { error_code: 'enforced_spend_limit_reached' };
    expect(read(429, errorBody('rate_limit_error', spent))).toMatchObject({ failure: 'bad_key' });
    const held = { error_code: 'organization_on_hold', appeal_url: null };
    expect(read(400, errorBody('invalid_request_error', held))).toMatchObject({
      failure: 'bad_key',
    });
    const ramp = { error_code: 'ramp_limit_exceeded' };
    expect(read(429, errorBody('rate_limit_error', ramp))).toMatchObject({
      failure: 'rate_limited',
    });
  });

  test('an account without credit is reported as bad_key, so that another provider is tried', () => {
    const without = (message: string) =>
      read(400, { type: 'error', error: { type: 'invalid_request_error', message } });
    const words =
      'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to ' +
      'upgrade or purchase credits.';
    expect(without(words)).toMatchObject({ failure: 'bad_key', status: 400 });
    expect(without(`messages.0: ${words}`)).toMatchObject({ failure: 'bad_request' });
  });

  test('an error has the wait from Retry-After', () => {
    const headers = { 'retry-after': '7' };
    expect(read(429, errorBody('rate_limit_error'), headers).retryAfterMs).toBe(7_000);
    expect(read(429, errorBody('rate_limit_error')).retryAfterMs).toBeUndefined();
  });

  test("an error never contains the provider's message", () => {
    const error = read(401, errorBody('authentication_error'));
    expect(JSON.stringify([error, error.message, error.stack])).not.toContain('sk-ant-secret');
  });
});
