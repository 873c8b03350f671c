import { describe, expect, test } from 'vitest';
import type { ChatRequest } from '../../../src/ai/completion/completion.js';
import { gemini } from '../../../src/ai/providers/gemini/gemini.js';
import type { JsonObject } from '../../../src/lib/json.js';

const REQUEST: ChatRequest = {
  model: 'gemini-3.8-flash',
  messages: [{ role: 'user', content: 'Hello' }],
};

const USAGE = {
  promptTokenCount: 86,
  toolUsePromptTokenCount: 4,
  cachedContentTokenCount: 50,
  candidatesTokenCount: 20,
  thoughtsTokenCount: 450,
  totalTokenCount: 560,
  promptTokensDetails: [{ modality: 'TEXT', tokenCount: 86 }],
  serviceTier: 'standard',
};

const OPENAI_USAGE = {
  prompt_tokens: 90,
  completion_tokens: 470,
  total_tokens: 560,
  prompt_tokens_details: { cached_tokens: 50 },
  completion_tokens_details: { reasoning_tokens: 450 },
};

const THOUGHT = { text: 'The user greets me.', thought: true };
const CALL = {
  functionCall: { id: 'nqh2j2zy', name: 'weather', args: { city: 'Київ', day: null } },
  thoughtSignature: 'EjQKMgEMOdbHJChLX75Q',
};

const DEEP = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
const DEEP_CALL = { functionCall: { name: 'f', args: { x: 'DEEP' } } };

/** A `GenerateContentResponse`; without a finish reason, an event in the middle of a stream. */
const generated = (parts: readonly object[] | undefined, finishReason?: string, usage = USAGE) =>
  JSON.stringify({
    candidates: [{ content: { parts, role: 'model' }, finishReason, index: 0, safetyRatings: [] }],
    usageMetadata: usage,
    modelVersion: 'gemini-3.8-flash',
    responseId: 'm91NaoKoNe2_vr0P3vX0iAY',
  });

const BLOCKED = JSON.stringify({
  promptFeedback: { blockReason: 'PROHIBITED_CONTENT' },
  usageMetadata: { promptTokenCount: 86, totalTokenCount: 86 },
  modelVersion: 'gemini-3.8-flash',
});

const failing = (
  code: number,
  status: string,
  details: readonly object[] = [],
  message = 'a secret',
) => JSON.stringify({ error: { code, message, status, details } });

const failsWith = (failure: string, more: object = {}) =>
  expect.objectContaining({ name: 'ProviderError', provider: 'gemini', failure, ...more });

function answer(text: string) {
  const completion = gemini.readAnswer(text, REQUEST);
  return { ...completion, body: JSON.parse(completion.json) };
}

describe('answer', () => {
  test('an answer becomes a chat completion without the thinking', () => {
    const { body, content, usage } = answer(
      generated([THOUGHT, { text: 'Привіт 👋' }, { text: '!', thoughtSignature: 'c2ln' }], 'STOP'),
    );
    expect(content).toBe('Привіт 👋!');
    expect(usage).toEqual({ inputTokens: 90, cacheReadTokens: 50, outputTokens: 470 });
    expect(body).toEqual({
      id: expect.stringMatching(/^chatcmpl-/),
      object: 'chat.completion',
      created: expect.any(Number),
      model: 'gemini-3.8-flash',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Привіт 👋!', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: OPENAI_USAGE,
    });
  });

  test('tool calls keep the thought signature that has to be sent back', () => {
    const { body, content } = answer(
      generated([THOUGHT, CALL, { functionCall: { name: 'now' } }], 'STOP'),
    );
    expect(content).toBe('');
    expect(body.choices[0].finish_reason).toBe('tool_calls');
    expect(body.choices[0].message).toEqual({
      role: 'assistant',
      content: null,
      refusal: null,
      tool_calls: [
        {
          id: 'nqh2j2zy',
          type: 'function',
          function: { name: 'weather', arguments: '{"city":"Київ","day":null}' },
          extra_content: { google: { thought_signature: 'EjQKMgEMOdbHJChLX75Q' } },
        },
        {
          id: expect.stringMatching(/^call_.+/),
          type: 'function',
          function: { name: 'now', arguments: '{}' },
        },
      ],
    });
  });

  test('an answer is sent back to Gemini unchanged', () => {
    const { message } = answer(generated([{ text: 'Let me see.' }, CALL], 'STOP')).body.choices[0];
    const { body } = gemini.request(
      { baseUrl: 'http://localhost', apiKey: undefined },
      { ...REQUEST, messages: [...REQUEST.messages, message] },
    );
    expect(JSON.parse(body).contents[1]).toEqual({
      role: 'model',
      parts: [{ text: 'Let me see.' }, CALL],
    });
  });

  test.each([
    ['STOP', 'stop'],
    ['MAX_TOKENS', 'length'],
    ['SAFETY', 'content_filter'],
    ['PROHIBITED_CONTENT', 'content_filter'],
    ['BLOCKLIST', 'content_filter'],
    ['SPII', 'content_filter'],
    ['RECITATION', 'content_filter'],
    ['OTHER', 'stop'],
    ['A_REASON_OF_TOMORROW', 'stop'],
  ])('the finish reason %s becomes %s', (reason, expected) => {
    const { body } = answer(generated([{ text: 'So' }], reason));
    expect(body.choices[0].finish_reason).toBe(expected);
  });

  test.each([
    ['MAX_TOKENS', 'length'],
    ['SAFETY', 'content_filter'],
  ])('an answer may be empty when it ends with %s', (reason, expected) => {
    const [choice] = answer(generated(undefined, reason)).body.choices;
    expect(choice).toMatchObject({ finish_reason: expected, message: { content: '' } });
  });

  test('an answer without token counts has no usage', () => {
    const text = JSON.stringify({
      candidates: [{ content: { parts: [{ text: 'So' }] }, finishReason: 'STOP' }],
    });
    expect(answer(text).usage).toBeUndefined();
    expect(answer(text).body).not.toHaveProperty('usage');
  });

  test.each([
    ['MALFORMED_FUNCTION_CALL', 'garbage'],
    ['UNEXPECTED_TOOL_CALL', 'garbage'],
    ['MISSING_THOUGHT_SIGNATURE', 'bad_request'],
  ])('an answer that ends with %s is a failure', (reason, failure) => {
    expect(() => answer(generated([{ text: 'I will' }], reason))).toThrow(failsWith(failure));
  });

  test('a blocked prompt is a refusal', () => {
    expect(() => answer(BLOCKED)).toThrow(failsWith('refused'));
  });

  test('an error in place of an answer is thrown', () => {
    expect(() => answer(failing(503, 'UNAVAILABLE'))).toThrow(
      failsWith('overloaded', { status: 503 }),
    );
  });

  test.each([
    ['nothing', ''],
    ['text', 'a secret'],
    ['a page', '<html>a secret</html>'],
    ['half an answer', generated([{ text: 'a secret' }], 'STOP').slice(0, -5)],
    ['null', 'null'],
    ['a list', '[]'],
    ['an object of nothing', '{}'],
    ['an error of another form', '{"error":"a secret"}'],
    ["another provider's", '{"choices":[{"message":{"content":"a secret"}}]}'],
    ['no candidate', '{"candidates":[]}'],
    ['candidates that are none', '{"candidates":"a secret"}'],
    ['text that is none', generated([{ text: 5 }], 'STOP')],
    ['a call of nothing', generated([{ functionCall: {} }], 'STOP')],
    ['silence for no known reason', generated(undefined, 'OTHER')],
    ['a number below nothing', generated([], 'STOP', { ...USAGE, promptTokenCount: -1 })],
    [
      'arguments that are nested too deeply to be written',
      generated([DEEP_CALL], 'STOP').replace('"DEEP"', DEEP),
    ],
  ])('a malformed answer is garbage, and the error does not contain it: %s', (_what, text) => {
    try {
      answer(text);
      expect.unreachable();
    } catch (error) {
      expect(error).toEqual(failsWith('garbage'));
      expect(String(error) + String((error as Error).cause)).not.toContain('secret');
    }
  });
});

describe('stream', () => {
  function stream(...events: readonly string[]) {
    return streamed({}, ...events);
  }
  function streamed(request: Partial<ChatRequest>, ...events: readonly string[]) {
    const reader = gemini.openStream({ ...REQUEST, stream: true, ...request });
    const sent = events.flatMap((data) => reader.read({ data }));
    if (reader.ended) sent.push(...reader.finish());
    const chunks = sent.map((json) => JSON.parse(json));
    return { reader, chunks, deltas: chunks.map(({ choices: [choice] }) => choice?.delta) };
  }

  test('a stream becomes the chunks of one completion', () => {
    const { reader, chunks } = stream(
      generated([{ text: 'Прив' }]),
      generated([{ text: 'іт 👋' }], 'STOP'),
    );
    const head = {
      id: chunks[0].id,
      object: 'chat.completion.chunk',
      created: chunks[0].created,
      model: 'gemini-3.8-flash',
    };
    const choice = (delta: object, reason: string | null = null) => ({
      ...head,
      choices: [{ index: 0, delta, logprobs: null, finish_reason: reason }],
    });
    expect(head.id).toMatch(/^chatcmpl-/);
    expect(chunks).toEqual([
      choice({ role: 'assistant', content: 'Прив' }),
      choice({ content: 'іт 👋' }),
      choice({}, 'stop'),
    ]);
    expect(reader.ended).toBe(true);
    expect(reader.usage).toEqual({ inputTokens: 90, cacheReadTokens: 50, outputTokens: 470 });
  });

  test('a stream sends nothing while the model thinks', () => {
    const { deltas } = stream(generated([THOUGHT]), generated([{ text: 'Hi' }], 'STOP'));
    expect(deltas).toEqual([{ role: 'assistant', content: 'Hi' }, {}]);
  });

  test('a stream counts the bytes of texts, thinking and calls', () => {
    const call = { functionCall: { name: 'now', args: { at: 'é' } } };
    const { reader } = stream(generated([THOUGHT, { text: 'Привіт' }]), generated([call], 'STOP'));
    expect(reader.bytes).toBe(Buffer.byteLength(`${THOUGHT.text}Привіт{"at":"é"}`));
  });

  test('each tool call of a stream has its own index', () => {
    const { chunks, deltas } = stream(
      generated([{ text: 'Let me see.' }]),
      generated([CALL, { functionCall: { name: 'now', args: {} } }]),
      generated([{ functionCall: { id: 'third', name: 'now', args: {} } }]),
      generated([{ text: '' }], 'STOP'),
    );
    expect(deltas).toEqual([
      { role: 'assistant', content: 'Let me see.' },
      {
        tool_calls: [
          {
            index: 0,
            id: 'nqh2j2zy',
            type: 'function',
            function: { name: 'weather', arguments: '{"city":"Київ","day":null}' },
            extra_content: { google: { thought_signature: 'EjQKMgEMOdbHJChLX75Q' } },
          },
          {
            index: 1,
            id: expect.stringMatching(/^call_.+/),
            type: 'function',
            function: { name: 'now', arguments: '{}' },
          },
        ],
      },
      {
        tool_calls: [
          {
            index: 2,
            id: 'third',
            type: 'function',
            function: { name: 'now', arguments: '{}' },
          },
        ],
      },
      {},
    ]);
    expect(chunks.at(-1).choices[0].finish_reason).toBe('tool_calls');
  });

  test('a call has the name by which the client declared the tool', () => {
    const tools = ['21st_builder', '_now', 'now'].map((name) => ({
      type: 'function',
      function: { name },
    }));
    const called = ['_21st_builder', '_now', 'now', 'other'].map((name) => ({
      functionCall: { name },
    }));
    const { deltas } = streamed({ tools }, generated(called, 'STOP'));
    const names = deltas[0].tool_calls.map((each: { function: JsonObject }) => each.function.name);
    expect(names).toEqual(['21st_builder', '_now', 'now', 'other']);
  });

  test('a stream ends with the usage if it is requested', () => {
    const { chunks } = streamed(
      { stream_options: { include_usage: true } },
      generated([{ text: 'Hi' }], undefined, { ...USAGE, candidatesTokenCount: 1 }),
      generated([], 'STOP'),
      generated([]),
    );
    expect(chunks.map(({ usage }) => usage)).toEqual([null, null, OPENAI_USAGE]);
    expect(chunks.at(-1)).toMatchObject({ id: chunks[0].id, choices: [] });
  });

  test('a stream includes a usage that arrives after the finish reason', () => {
    const { chunks } = streamed(
      { stream_options: { include_usage: true } },
      JSON.stringify({ candidates: [{ finishReason: 'MAX_TOKENS', index: 0 }] }),
      JSON.stringify({ usageMetadata: USAGE }),
    );
    expect(chunks).toMatchObject([
      {
        choices: [{ delta: { role: 'assistant', content: '' }, finish_reason: 'length' }],
        usage: null,
      },
      { choices: [], usage: OPENAI_USAGE },
    ]);
  });

  test('a stream passes on the text after an early finish reason, with the last reason', () => {
    const { chunks } = streamed(
      { stream_options: { include_usage: true } },
      generated([{ text: 'H' }], 'STOP', { ...USAGE, candidatesTokenCount: 1 }),
      generated([{ text: 'ello' }], 'STOP'),
      generated([CALL], 'MAX_TOKENS'),
    );
    expect(chunks.map(({ choices: [choice] }) => choice?.finish_reason)).toEqual([
      ...[null, null, null, 'length'],
      undefined,
    ]);
    expect(chunks.map(({ choices: [choice] }) => choice?.delta.content)).toEqual([
      ...['H', 'ello', undefined, undefined],
      undefined,
    ]);
    expect(chunks.map(({ usage }) => usage)).toEqual([null, null, null, null, OPENAI_USAGE]);
  });

  test('a stream that ends for an unknown reason without output is garbage', () => {
    expect(() => stream(generated([], 'OTHER'))).toThrow(failsWith('garbage'));
  });

  test('a stream that breaks off is not ended, and its latest usage counts', () => {
    const { reader } = stream(generated([{ text: 'Hi' }]));
    expect(reader.ended).toBe(false);
    expect(reader.usage).toEqual({ inputTokens: 90, cacheReadTokens: 50, outputTokens: 470 });
  });

  test('a blocked prompt is a refusal in a stream too', () => {
    expect(() => stream(BLOCKED)).toThrow(failsWith('refused'));
  });

  test.each([
    ['error', failing(503, 'UNAVAILABLE'), 'overloaded'],
    ['an error in a list', `[${failing(429, 'RESOURCE_EXHAUSTED')}]`, 'rate_limited'],
    ['a call that went wrong', generated([], 'MALFORMED_FUNCTION_CALL'), 'garbage'],
    ['half an event', generated([], 'STOP').slice(0, -5), 'garbage'],
    ["another provider's event", '{"type":"ping"}', 'garbage'],
    ['an event of nothing', '', 'garbage'],
  ])('a stream fails in the middle with %s', (_what, data, failure) => {
    const reader = gemini.openStream({ ...REQUEST, stream: true });
    expect(reader.read({ data: generated([{ text: 'Hi' }]) })).toHaveLength(1);
    expect(() => reader.read({ data })).toThrow(failsWith(failure));
    expect(reader.ended).toBe(false);
  });
});

describe('error', () => {
  const read = (status: number, text: string, headers: Record<string, string> = {}) =>
    gemini.readError(status, new Headers(headers), text);

  const detail = (type: string, more: object) => ({
    '@type': `type.googleapis.com/google.rpc.${type}`,
    ...more,
  });

  test.each([
    [400, 'INVALID_ARGUMENT', 'bad_request'],
    [400, 'FAILED_PRECONDITION', 'bad_key'],
    [401, 'UNAUTHENTICATED', 'bad_key'],
    [403, 'PERMISSION_DENIED', 'bad_key'],
    [404, 'NOT_FOUND', 'unknown_model'],
    [429, 'RESOURCE_EXHAUSTED', 'rate_limited'],
    [499, 'CANCELLED', 'overloaded'],
    [500, 'INTERNAL', 'overloaded'],
    [503, 'UNAVAILABLE', 'overloaded'],
    [504, 'DEADLINE_EXCEEDED', 'overloaded'],
  ])('status %i with %s is %s', (status, name, failure) => {
    const error = read(status, failing(status, name));
    expect(error).toEqual(failsWith(failure, { status, retryAfterMs: undefined }));
    expect(String(error)).not.toContain('secret');
  });

  test('an invalid key, which Gemini reports as INVALID_ARGUMENT, is bad_key', () => {
    const details = [
      detail('ErrorInfo', {
        reason: 'API_KEY_INVALID',
        domain: 'googleapis.com',
        metadata: { service: 'generativelanguage.googleapis.com' },
      }),
      detail('LocalizedMessage', { locale: 'en-US', message: 'API key not valid.' }),
    ];
    expect(read(400, failing(400, 'INVALID_ARGUMENT', details))).toEqual(failsWith('bad_key'));
  });

  test('a rate limit error has the wait from its details or from Retry-After', () => {
    const limited = (retryDelay: unknown) =>
      failing(429, 'RESOURCE_EXHAUSTED', [
        detail('Help', { links: [{ url: 'https://ai.google.dev/gemini-api/docs/rate-limits' }] }),
        detail('QuotaFailure', { violations: [{ quotaValue: '20' }] }),
        detail('RetryInfo', { retryDelay }),
      ]);
    const wait = (delay: unknown, headers = {}) => read(429, limited(delay), headers).retryAfterMs;
    expect(wait('34s')).toBe(34_000);
    expect(wait('19.424395716s')).toBe(19_425);
    expect(wait('34s', { 'retry-after': '5' })).toBe(34_000);
    expect(wait('52758s')).toBe(600_000);
    for (const delay of ['soon', '-5s', '1.2.3s', 34, undefined]) {
      expect(wait(delay)).toBeUndefined();
      expect(wait(delay, { 'retry-after': '5' })).toBe(5_000);
    }
  });

  test.each([
    [400, 'bad_request'],
    [401, 'bad_key'],
    [402, 'bad_key'],
    [403, 'bad_key'],
    [404, 'unknown_model'],
    [408, 'timeout'],
    [413, 'too_long'],
    [429, 'rate_limited'],
    [500, 'overloaded'],
    [502, 'overloaded'],
    [302, 'garbage'],
  ])("an error without Gemini's body is classified by its status: %i is %s", (status, failure) => {
    const cutOff = failing(503, 'UNAVAILABLE').slice(0, 40);
    for (const text of ['', '<html>', 'null', '{"error":5}', '{"error":{"details":5}}', cutOff]) {
      expect(read(status, text)).toEqual(failsWith(failure, { status }));
    }
  });
});
