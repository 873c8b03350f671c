import { describe, expect, test } from 'vitest';
import type { ChatMessage, ChatRequest } from '../../../../src/ai/completion/completion.js';
import { ProviderError } from '../../../../src/ai/completion/provider-error.js';
import {
  PROVIDER_BASE_URLS,
  type ProviderName,
} from '../../../../src/ai/completion/provider-names.js';
import { openAiCompatible } from '../../../../src/ai/providers/openai/openai-compatible.js';

const REQUEST: ChatRequest = {
  model: 'some-model',
  messages: [{ role: 'user', content: 'Hello' }],
};
const AT = { baseUrl: 'http://127.0.0.1:1/v1', apiKey: 'sk-test' };
const SAID = 'Hello, my key is sk-test';

const bodyOf = (name: ProviderName, request: ChatRequest, baseUrl = AT.baseUrl) =>
  JSON.parse(openAiCompatible(name).request({ ...AT, baseUrl }, request).body);

/** Returns the failure that `work` throws, after checking that it contains nothing of the provider's text. */
function failureOf(work: () => unknown): ProviderError {
  try {
    work();
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    expect(`${error.message} ${String(error.cause)}`).not.toContain('sk-test');
    return error;
  }
  throw new Error('no error was thrown');
}

describe('request', () => {
  test('a request is passed through unchanged, with the key if the provider has one', () => {
    const request = { ...REQUEST, tools: [{ type: 'function' }], logit_bias: { 50256: -100 } };
    const openrouter = openAiCompatible('openrouter');
    expect(openrouter.request(AT, request)).toEqual({
      url: 'http://127.0.0.1:1/v1/chat/completions',
      headers: { 'content-type': 'application/json', authorization: 'Bearer sk-test' },
      body: JSON.stringify(request),
    });
    const { headers } = openrouter.request({ ...AT, apiKey: undefined }, request);
    expect(headers).not.toHaveProperty('authorization');
  });

  test.each([undefined, null, 'x', { include_usage: false, include_obfuscation: true }])(
    "a stream requests the usage regardless of the client's stream_options: %j",
    (options) => {
      const body = bodyOf('openai', { ...REQUEST, stream: true, stream_options: options });
      expect(body.stream_options).toMatchObject({ include_usage: true });
      expect(body.stream_options.include_obfuscation).toBe(
        typeof options === 'object' && options ? true : undefined,
      );
    },
  );

  test.each<[ProviderName, readonly string[]]>([
    ['openrouter', ['reasoning', 'include_reasoning', 'top_k']],
    ['groq', ['include_reasoning', 'reasoning_format']],
    ['openai', ['top_k', 'chat_template_kwargs']],
    ['minimax', ['reasoning_split']],
  ])(
    'a request to %s keeps the fields that it supports and drops those that cost more',
    (name, own) => {
      const all = [
        'reasoning',
        'include_reasoning',
        'top_k',
        'reasoning_format',
        'chat_template_kwargs',
        'reasoning_split',
        'generationConfig',
        'thinking',
      ];
      const charged = [
        'models',
        'route',
        'plugins',
        'provider',
        'preset',
        'transforms',
        'web_search_options',
        'service_tier',
        'store',
        'search_settings',
        'audio',
        'prediction',
        '__proto__',
      ];
      const fields = Object.fromEntries([...all, ...charged].map((field) => [field, { x: 1 }]));
      expect(Object.keys(bodyOf(name, { ...REQUEST, ...fields })).toSorted()).toEqual(
        [...Object.keys(REQUEST), ...own].toSorted(),
      );
      expect(bodyOf('openai', { ...REQUEST, ...fields }, PROVIDER_BASE_URLS.openai)).toEqual(
        REQUEST,
      );
    },
  );

  test('the limit is sent as max_completion_tokens to OpenAI and as max_tokens to others', () => {
    const own = PROVIDER_BASE_URLS.openai;
    const bounded = { ...REQUEST, max_tokens: 7 };
    expect(bodyOf('openai', bounded, own)).toEqual({ ...REQUEST, max_completion_tokens: 7 });
    expect(bodyOf('openai', { ...bounded, max_completion_tokens: 5 }, own)).toEqual({
      ...REQUEST,
      max_completion_tokens: 5,
    });
    expect(bodyOf('openai', REQUEST, own)).toEqual(REQUEST);
    expect(bodyOf('openai', bounded)).toEqual(bounded);
    expect(bodyOf('groq', bounded, PROVIDER_BASE_URLS.groq)).toEqual(bounded);
  });
});

describe('conversation', () => {
  const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } };
  const answer = { role: 'assistant', content: 'Hi' };
  const sentTo = (name: ProviderName, baseUrl: string, ...messages: ChatMessage[]) =>
    bodyOf(name, { ...REQUEST, messages }, baseUrl).messages;
  const OWN = PROVIDER_BASE_URLS.openai;

  test.each<[ProviderName, string, string]>([
    ['openai', OWN, 'developer'],
    ['openai', AT.baseUrl, 'system'],
    ['openrouter', AT.baseUrl, 'developer'],
    ['groq', AT.baseUrl, 'system'],
    ['minimax', AT.baseUrl, 'system'],
  ])('the role developer is sent to %s at %s as %s', (name, baseUrl, role) => {
    const message = { role: 'developer', content: 'Be short.' };
    expect(sentTo(name, baseUrl, message)).toEqual([{ ...message, role }]);
  });

  const REASONING = {
    reasoning: 'Hm.',
    reasoning_content: 'Hm.',
    reasoning_details: [{ type: 'reasoning.text', format: 'openai-responses-v1' }],
  };
  const EXTRA = { extra_content: { google: { thought_signature: 'c2ln' } } };

  test.each<[ProviderName, string, object]>([
    ['openai', OWN, {}],
    ['openai', AT.baseUrl, {}],
    ['openai', 'https://api.deepseek.com/v1', { reasoning: 'Hm.', reasoning_content: 'Hm.' }],
    ['groq', AT.baseUrl, {}],
    ['minimax', AT.baseUrl, {}],
    ['openrouter', AT.baseUrl, REASONING],
  ])('the reasoning of another provider is sent to %s at %s as %j', (name, baseUrl, kept) => {
    const given = { ...answer, ...REASONING };
    expect(sentTo(name, baseUrl, given)).toEqual([{ ...answer, ...kept }]);
  });

  test.each<[ProviderName, string, object]>([
    ['openai', OWN, {}],
    ['openai', AT.baseUrl, {}],
    ['openai', 'https://generativelanguage.googleapis.com/v1beta/openai', EXTRA],
    ['groq', AT.baseUrl, {}],
    ['openrouter', AT.baseUrl, {}],
    ['minimax', AT.baseUrl, {}],
  ])('a signature of Gemini is sent to %s at %s as %j', (name, baseUrl, kept) => {
    const given = { ...answer, tool_calls: [{ index: 0, ...call, ...EXTRA }] };
    expect(sentTo(name, baseUrl, given)[0]).toEqual({
      ...answer,
      tool_calls: [{ ...call, ...kept }],
    });
  });

  test.each([null, []])('an answer without calls is sent without the list %j', (calls) => {
    expect(sentTo('openai', OWN, { ...answer, tool_calls: calls })).toEqual([answer]);
  });

  test('an answer without content and calls is left out', () => {
    const nothing = { role: 'assistant', content: null, reasoning_content: 'Hm.' };
    expect(sentTo('openai', OWN, nothing, answer)).toEqual([answer]);
    expect(sentTo('openai', OWN, nothing)).toEqual([{ role: 'user', content: '(no text)' }]);
  });

  test('a long id of a call is shortened, also in its result, and stays the same', () => {
    const id = 'fc_'.padEnd(83, '0af');
    const messages = [
      { ...answer, tool_calls: [{ ...call, id }] },
      { role: 'tool', tool_call_id: id, content: 'x' },
    ];
    const [said, result] = sentTo('openai', OWN, ...messages);
    expect(said.tool_calls[0].id).toMatch(/^.{1,40}$/);
    expect(result.tool_call_id).toBe(said.tool_calls[0].id);
    expect(sentTo('groq', AT.baseUrl, ...messages)[1].tool_call_id).toBe(result.tool_call_id);
  });

  test.each([
    ['https://api.mistral.ai/v1', 'a-fine-tuned-model'],
    [AT.baseUrl, 'mistralai/Devstral-Small-2507'],
  ])('ids of calls have nine letters or digits at %s for %s', (baseUrl, model) => {
    const ids = ['call_1', 'call_1', '', 'D681PevKs', 'fc_'.padEnd(83, '0af')];
    const messages = [
      { ...answer, tool_calls: ids.map((id) => ({ ...call, id })) },
      ...ids.map((id) => ({ role: 'tool', tool_call_id: id, content: 'x' })),
    ];
    const [said, ...results] = bodyOf('openai', { ...REQUEST, model, messages }, baseUrl).messages;
    const sent = said.tool_calls.map(({ id }: { id: string }) => id);
    for (const id of sent) expect(id).toMatch(/^[a-zA-Z0-9]{9}$/);
    expect(new Set(sent).size).toBe(ids.length);
    expect(sent[3]).toBe('D681PevKs');
    expect(results.map((each: ChatMessage) => each.tool_call_id)).toEqual(sent);
  });

  test.each(['user', 'system'])(
    'Mistral alone gets an answer between results and a message of the role %s',
    (role) => {
      const rounds = [
        { ...answer, tool_calls: [call] },
        { role: 'tool', tool_call_id: call.id, content: 'x' },
      ];
      const messages = [...rounds, { ...answer }, ...rounds, { role, content: 'y' }];
      const rolesAt = (baseUrl: string) =>
        bodyOf('openai', { ...REQUEST, messages }, baseUrl).messages.map(
          (each: ChatMessage) => each.role,
        );
      const given = ['assistant', 'tool', 'assistant', 'assistant', 'tool'];
      expect(rolesAt('https://api.mistral.ai/v1')).toEqual([...given, 'assistant', role]);
      expect(rolesAt(AT.baseUrl)).toEqual([...given, role]);
    },
  );

  const calling = (...ids: string[]) => ({
    ...answer,
    tool_calls: ids.map((id) => ({ ...call, id })),
  });
  const result = (id: string, content = `of ${id}`) => ({
    role: 'tool',
    tool_call_id: id,
    content,
  });
  const user = { role: 'user', content: 'Faster!' };

  test('each call has one result, right after it', () => {
    expect(
      sentTo('openai', OWN, calling('a', 'b'), user, result('b'), result('b', 'again'), answer),
    ).toEqual([calling('a', 'b'), result('a', '(no result)'), result('b', 'again'), user, answer]);
  });

  test('a result whose call was cut off is left out of earlier turns', () => {
    expect(sentTo('openai', OWN, result('a'), answer, user)).toEqual([answer, user]);
    expect(sentTo('openai', OWN, calling('a'), result('x'))).toEqual([
      calling('a'),
      result('a', '(no result)'),
      result('x'),
    ]);
  });

  test.each([
    ['functions.now', 'functions_now'],
    ['', 'unknown'],
    [null, 'unknown'],
    ['n'.repeat(80), 'n'.repeat(64)],
  ])('the name of an earlier call is sent in letters that servers accept: %j', (name, expected) => {
    const called = { ...calling('a'), tool_calls: [{ ...call, function: { name } }] };
    const [said] = sentTo('openai', OWN, called);
    expect(said.tool_calls[0].function).toEqual({ name: expected, arguments: '{}' });
  });

  test('the name of a speaker is sent in letters that OpenAI accepts', () => {
    const [said] = sentTo('openai', OWN, { ...user, name: 'Ada <L.> of "X"' });
    expect(said.name).toBe('Ada_L._of_"X"');
  });

  test('a refusal among the parts is sent as text, and a part without text as none', () => {
    const refusal = { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] };
    const empty = { role: 'user', content: [{ type: 'text', text: '' }] };
    expect(sentTo('openai', OWN, refusal)[0].content).toEqual([{ type: 'text', text: 'No.' }]);
    expect(sentTo('minimax', AT.baseUrl, refusal, empty)).toEqual([
      { role: 'assistant', content: 'No.' },
      { role: 'user', content: '(no text)' },
    ]);
  });

  test('an answer in any JSON is requested in a message, as OpenAI requires, unless one already requests it', () => {
    const asked = { ...REQUEST, response_format: { type: 'json_object' } };
    const asking = { role: 'user', content: [{ type: 'text', text: 'JSON, please' }] };
    expect(bodyOf('openai', asked)).toEqual(asked);
    expect(bodyOf('openai', asked, OWN).messages).toEqual([
      { role: 'system', content: 'Answer in JSON.' },
      ...REQUEST.messages,
    ]);
    expect(bodyOf('openai', { ...asked, messages: [asking] }, OWN).messages).toEqual([asking]);
  });

  test('MiniMax receives one message of instructions, at the beginning', () => {
    const system = { role: 'system', content: 'Be short.' };
    const developer = { role: 'developer', content: [{ type: 'text', text: 'Be kind.' }] };
    const first = { role: 'system', content: 'Be short.\nBe kind.' };
    expect(sentTo('minimax', AT.baseUrl, system, user, developer)).toEqual([first, user]);
    expect(sentTo('groq', AT.baseUrl, system, user, system)).toEqual([system, user, system]);
    const request = { model: 'minimax/minimax-m3', messages: [system, system, user] };
    expect(bodyOf('openrouter', request).messages).toHaveLength(2);
  });

  test.each<ProviderName>(['minimax', 'openrouter'])(
    'tools are declared to %s with parameters',
    (name) => {
      const tools = [{ type: 'function', function: { name: 'now' } }];
      expect(bodyOf(name, { ...REQUEST, tools }).tools[0].function).toEqual({
        name: 'now',
        parameters: { type: 'object', properties: {} },
      });
    },
  );

  describe('calls at a Gemini of OpenRouter', () => {
    const signature = (id: string, data: string) => ({
      ...{ type: 'reasoning.encrypted', data, id, format: 'google-gemini-v1', index: 0 },
    });
    const sentBy = (model: string, ...messages: ChatMessage[]) =>
      bodyOf('openrouter', { model, messages }).messages;

    test('calls of another model have the marker for a missing signature', () => {
      const marker = signature('a', 'skip_thought_signature_validator');
      const [said] = sentBy('google/gemini-3.8-flash', calling('a', 'b'));
      expect(said.reasoning_details).toEqual([marker]);
      expect(sentBy('google/gemini-2.5-flash', calling('a'))[0]).toEqual(calling('a'));
    });

    test('a signature names its call, also if the id of the call is replaced', () => {
      const turn = (data: string) => ({
        ...calling('tool_0'),
        reasoning_details: [signature('tool_0', data)],
      });
      const messages = [turn('one'), result('tool_0'), turn('two'), result('tool_0')];
      const [one, , two] = sentBy('google/gemini-3.8-flash', ...messages);
      expect(one).toEqual(turn('one'));
      expect(two.tool_calls[0].id).not.toBe('tool_0');
      expect(two.reasoning_details).toEqual([signature(two.tool_calls[0].id, 'two')]);
    });
  });

  test('the last four marks for the cache are sent to OpenRouter', () => {
    const part = { type: 'text', text: 'a', cache_control: { type: 'ephemeral' } };
    const [said] = sentTo('openrouter', AT.baseUrl, { role: 'user', content: Array(5).fill(part) });
    expect(said.content).toEqual([{ type: 'text', text: 'a' }, ...Array(4).fill(part)]);
  });

  test('images of a result follow as a message of the user', () => {
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };
    const messages = sentTo(
      'openai',
      OWN,
      { ...answer, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content: [{ type: 'text', text: 'a map' }, image] },
    );
    expect(messages.slice(1)).toEqual([
      { role: 'tool', tool_call_id: 'call_1', content: [{ type: 'text', text: 'a map' }] },
      { role: 'user', content: [{ type: 'text', text: 'Images of the tool results:' }, image] },
    ]);
  });

  test('a model without images gets a text in their place, and Groq one text', () => {
    const content = [
      { type: 'text', text: 'See:', cache_control: { type: 'ephemeral' } },
      { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
    ];
    const request = { model: 'openai/gpt-oss-120b', messages: [{ role: 'user', content }] };
    expect(bodyOf('groq', request).messages[0].content).toBe(
      'See:\n(An image was left out: this model cannot read it.)',
    );
    expect(bodyOf('groq', { ...request, model: 'llama-4-scout' }).messages[0].content).toEqual([
      { type: 'text', text: 'See:' },
      content[1],
    ]);
  });

  test('tools are declared with the type object, and choices without tools are left out', () => {
    const tools = [{ type: 'function', function: { name: 'f', parameters: {} } }];
    expect(bodyOf('openai', { ...REQUEST, tools }, OWN).tools[0].function.parameters).toEqual({
      type: 'object',
      properties: {},
    });
    const none = { tools: [], tool_choice: 'auto', parallel_tool_calls: false };
    expect(bodyOf('openai', { ...REQUEST, ...none }, OWN)).toEqual(REQUEST);
  });

  test('settings that a model refuses are left out or changed', () => {
    const settings = { temperature: 0, stop: 'END', reasoning_effort: 'xhigh' };
    const sent = (name: ProviderName, model: string, baseUrl?: string) => {
      const {
        temperature,
        stop,
        reasoning_effort: effort,
      } = bodyOf(name, { ...REQUEST, ...settings, model }, baseUrl);
      return [temperature, stop, effort];
    };
    expect(sent('openai', 'gpt-6-luna', OWN)).toEqual([undefined, undefined, 'xhigh']);
    expect(sent('openai', 'gpt-4', OWN)).toEqual([0, 'END', undefined]);
    expect(sent('openai', 'gpt-6-luna')).toEqual([0, 'END', 'xhigh']);
    expect(sent('groq', 'openai/gpt-oss-20b')).toEqual([0, 'END', 'high']);
    expect(sent('minimax', 'MiniMax-M3')).toEqual([0.01, 'END', 'xhigh']);
  });

  test.each([
    ['gpt-6-luna', { reasoning_effort: 'none', temperature: 0 }],
    ['gpt-5.4', { reasoning_effort: 'none', temperature: 0 }],
    ['gpt-5', { reasoning_effort: 'high' }],
    ['o4-mini', { reasoning_effort: 'high' }],
    ['gpt-4', { temperature: 0 }],
  ])('a request to %s contains the tools and %j', (model, settings) => {
    const parameters = { type: 'object', properties: {} };
    const tools = [{ type: 'function', function: { name: 'f', parameters } }];
    const asked = { ...REQUEST, model, tools, reasoning_effort: 'high', temperature: 0 };
    expect(bodyOf('openai', asked, OWN)).toEqual({ ...REQUEST, model, tools, ...settings });
  });

  test('a format of the answer is not sent to Groq beside tools', () => {
    const asked = { ...REQUEST, response_format: { type: 'json_schema', json_schema: {} } };
    const tools = [{ type: 'function', function: { name: 'f' } }];
    expect(bodyOf('groq', asked)).toEqual(asked);
    expect(bodyOf('groq', { ...asked, tools })).toEqual({ ...REQUEST, tools });
  });

  test('labels that are too long for OpenAI are sent as hashes', () => {
    const labels = { user: 'u'.repeat(65), prompt_cache_key: 'k'.repeat(64) };
    const body = bodyOf('openai', { ...REQUEST, ...labels }, OWN);
    expect(body.user).toMatch(/^[0-9a-f]{64}$/);
    expect(body.prompt_cache_key).toBe(labels.prompt_cache_key);
    expect(bodyOf('openai', { ...REQUEST, ...labels })).toEqual({ ...REQUEST, ...labels });
  });
});

const USAGE = { prompt_tokens: 12, completion_tokens: 34, total_tokens: 46 };
const whole = (more: object = {}, message: object = { role: 'assistant', content: 'Hi' }) =>
  JSON.stringify({
    choices: [{ index: 0, message, finish_reason: 'stop' }],
    usage: USAGE,
    ...more,
  });

const read = (name: ProviderName, text: string) => openAiCompatible(name).readAnswer(text, REQUEST);

describe('whole answer', () => {
  test('an answer is returned unchanged, with its usage', () => {
    const text = whole({ x_unknown: [1], system_fingerprint: null });
    expect(read('openai', text)).toEqual({
      json: text,
      content: 'Hi',
      bytes: 2,
      usage: { inputTokens: 12, outputTokens: 34 },
    });
  });

  test('the tokens of the prompt cache are read, and are none if malformed', () => {
    const usage = (details: unknown) =>
      read('openai', whole({ usage: { ...USAGE, prompt_tokens_details: details } })).usage;
    expect(usage({ cached_tokens: 8, cache_write_tokens: 4, audio_tokens: 0 })).toEqual({
      inputTokens: 12,
      outputTokens: 34,
      cacheReadTokens: 8,
      cacheWriteTokens: 4,
    });
    for (const details of [null, 'x', { cached_tokens: -1 }, {}]) {
      expect(usage(details)).toEqual({ inputTokens: 12, outputTokens: 34 });
    }
  });

  test.each([{ prompt_cache_hit_tokens: 5 }, { cached_tokens: 5 }])(
    'the tokens of the prompt cache are read from the field of other servers: %j',
    (own) => {
      const { usage } = read('openai', whole({ usage: { ...USAGE, ...own } }));
      expect(usage?.cacheReadTokens).toBe(5);
    },
  );

  const called = { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } };
  const choice = (reason: string, tool_calls?: object[]) => ({
    choices: [{ index: 0, message: { content: null, tool_calls }, finish_reason: reason }],
  });

  test.each([
    ['stop', [called], 'tool_calls'],
    ['stop', undefined, 'stop'],
    ['length', [called], 'length'],
    ['tool_use', [called], 'tool_calls'],
    ['end_turn', undefined, 'stop'],
    ['max_tokens', undefined, 'length'],
  ])('the finish reason %j with the calls %j is given as %j', (reason, calls, expected) => {
    const { json } = read('openai', JSON.stringify(choice(reason, calls)));
    expect(JSON.parse(json).choices[0].finish_reason).toBe(expected);
  });

  test('calls have an id, and arguments that are a text', () => {
    const odd = [
      { function: { name: 'f', arguments: { a: 1 } } },
      { id: '', function: { name: 'f' } },
      called,
    ];
    const { json } = read('openai', JSON.stringify(choice('tool_calls', odd)));
    const fresh = { id: expect.stringMatching(/^call_./), type: 'function' };
    expect(JSON.parse(json).choices[0].message.tool_calls).toEqual([
      { ...fresh, function: { name: 'f', arguments: '{"a":1}' } },
      { ...fresh, function: { name: 'f', arguments: '' } },
      called,
    ]);
  });

  test("an answer's bytes are those of all its choices' texts, reasoning and calls", () => {
    const call = { id: 'c', type: 'function', function: { name: 'see', arguments: '{"é":1}' } };
    const choice = (message: object) => ({ index: 0, message, finish_reason: 'stop' });
    const details = [{ type: 'reasoning.text', text: 'ab' }];
    const choices = [
      choice({ role: 'assistant', content: 'é', reasoning: 'ab', reasoning_details: details }),
      choice({ content: null, refusal: 'no', reasoning_content: 'abc', tool_calls: [call, null] }),
    ];
    expect(read('openrouter', whole({ choices })).bytes).toBe(2 + 2 + 2 + 3 + 3 + 8);
  });

  test('an answer with tool calls may have no text', () => {
    expect(read('groq', whole({}, { content: null, tool_calls: [{}] })).content).toBe('');
    expect(read('groq', whole({}, { tool_calls: [{}] })).content).toBe('');
  });

  test.each([
    undefined,
    null,
    'many',
    { total_tokens: 9 },
    { prompt_tokens: -1, completion_tokens: 2 },
    { prompt_tokens: 1.5, completion_tokens: 2 },
    { prompt_tokens: '1', completion_tokens: 2 },
  ])('an answer with a missing or malformed usage is accepted: %j', (usage) => {
    expect(read('openai', whole({ usage }))).toMatchObject({ content: 'Hi', usage: undefined });
  });

  test('an answer with a list of parts has the text of the parts', () => {
    const thinking = [
      { type: 'text', text: 'A ' },
      { type: 'text', text: 'greeting.' },
    ];
    const parts = [{ type: 'thinking', thinking }, { type: 'text', text: 'H' }, 'i', { type: 'x' }];
    const { content, json, bytes, usage } = read('openai', whole({}, { content: parts }));
    expect([content, bytes, usage]).toEqual(['Hi', 13, { inputTokens: 12, outputTokens: 34 }]);
    expect(JSON.parse(json)).toMatchObject({
      choices: [{ message: { content: 'Hi', reasoning_content: 'A greeting.' } }],
      usage: USAGE,
    });
  });

  test('an answer with a list of parts that is nested too deeply is read, or is garbage', () => {
    const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
    const text = whole({}, { content: [{ type: 'text', text: 'Hi' }], x: 'DEEP' });
    // Newer releases of Node write values of every depth.
    const outcomeOf = (work: () => string) => {
      try {
        return work();
      } catch (error) {
        return error instanceof ProviderError ? error.failure : error;
      }
    };
    const content = () => read('openai', text.replace('"DEEP"', deep)).content;
    expect(['Hi', 'garbage']).toContain(outcomeOf(content));
  });

  test('an answer may contain an error field that reports no error', () => {
    const base = { base_resp: { status_code: 0, status_msg: 'success' }, error: null };
    expect(read('minimax', whole(base)).content).toBe('Hi');
  });

  test.each([
    '',
    'null',
    '[]',
    '"sk-test"',
    'sk-test',
    '{',
    '{}',
    '{"choices":[]}',
    '{"choices":[{}]}',
    '<html>',
  ])('a malformed answer is garbage: %j', (text) => {
    expect(failureOf(() => read('openai', text)).failure).toBe('garbage');
  });

  test.each<[ProviderName, object, string]>([
    ['openrouter', { error: { code: 429, message: SAID } }, 'rate_limited'],
    ['openrouter', { error: { code: 502, message: SAID } }, 'overloaded'],
    ['openrouter', { error: { code: '403', message: SAID } }, 'refused'],
    ['openrouter', { error: { code: 402, message: SAID } }, 'bad_key'],
    ['openrouter', { error: { code: 408, message: SAID } }, 'timeout'],
    // The server behind the provider refuses the request: another provider may accept it.
    ['openrouter', { error: { code: 400, message: SAID, type: 'x' } }, 'overloaded'],
    ['openrouter', { error: { message: SAID } }, 'overloaded'],
    [
      'openrouter',
      { choices: [{ message: { content: 'H' }, error: { code: 502 } }] },
      'overloaded',
    ],
    ['openrouter', { choices: [{ error: { code: 429, message: SAID } }] }, 'rate_limited'],
    ['openai', { error: { code: 'context_length_exceeded', message: SAID } }, 'too_long'],
    ['openai', { error: { code: null, type: 'insufficient_quota' } }, 'bad_key'],
    ['openai', { error: SAID }, 'overloaded'],
    ['openai', { error: SAID, code: 429 }, 'rate_limited'],
    ['openai', { object: 'error', message: SAID, code: 429 }, 'rate_limited'],
    ['openai', { object: 'error', message: SAID, code: 'model_not_found' }, 'unknown_model'],
    [
      'openrouter',
      { choices: [{ message: { content: '' }, finish_reason: 'error' }] },
      'overloaded',
    ],
    [
      'openai',
      { choices: [{ message: { content: '' }, finish_reason: 'insufficient_system_resource' }] },
      'overloaded',
    ],
    ['openai', { error: { code: 'model_not_supported', message: SAID } }, 'unknown_model'],
    ['minimax', { choices: null, base_resp: { status_code: 1004, status_msg: SAID } }, 'bad_key'],
    ['minimax', { base_resp: { status_code: 1008 } }, 'bad_key'],
    ['minimax', { base_resp: { status_code: 2049 } }, 'bad_key'],
    ['minimax', { base_resp: { status_code: 1002 } }, 'rate_limited'],
    ['minimax', { base_resp: { status_code: 1039 } }, 'rate_limited'],
    ['minimax', { base_resp: { status_code: 1001 } }, 'overloaded'],
    ['minimax', { base_resp: { status_code: 1026 } }, 'refused'],
    ['minimax', { base_resp: { status_code: 1027 } }, 'refused'],
    ['minimax', { base_resp: { status_code: 2013 } }, 'bad_request'],
    ['minimax', { base_resp: { status_code: 9999 } }, 'overloaded'],
  ])('an error inside an answer of %s with status 200 is a failure: %j', (name, body, failure) => {
    expect(failureOf(() => read(name, JSON.stringify(body))).failure).toBe(failure);
  });

  test('an answer beside an error is a failure', () => {
    const error = { code: 500, message: SAID };
    expect(failureOf(() => read('openrouter', whole({ error }))).failure).toBe('overloaded');
    const base = { base_resp: { status_code: 1027 } };
    expect(failureOf(() => read('minimax', whole(base))).failure).toBe('refused');
  });
});

const delta = (content: string, more: object = {}) =>
  JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: null }], ...more });
const END = JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
const USED = JSON.stringify({ choices: [], usage: USAGE });

function stream(name: ProviderName, events: readonly string[], request: object = {}) {
  const reader = openAiCompatible(name).openStream({ ...REQUEST, stream: true, ...request });
  const chunks = events.flatMap((data) => reader.read({ data }));
  if (reader.ended) chunks.push(...reader.finish());
  const { ended, over, usage } = reader;
  return { chunks, ended, over, usage };
}

describe('stream', () => {
  const used = { inputTokens: 12, outputTokens: 34 };

  test('a stream is passed on chunk by chunk, the usage only if the client requests it', () => {
    const events = [delta('H'), delta('i', { x: [1] }), END, USED, '[DONE]'];
    const reported = { ended: true, over: true, usage: used };
    expect(stream('openai', events)).toEqual({ ...reported, chunks: events.slice(0, 3) });
    for (const stream_options of [{}, { include_usage: false }, null]) {
      expect(stream('openai', events, { stream_options }).chunks).toEqual(events.slice(0, 3));
    }
    const asking = { stream_options: { include_usage: true } };
    expect(stream('openai', events, asking)).toEqual({ ...reported, chunks: events.slice(0, 4) });
  });

  test('a stream counts the bytes of its texts, reasoning and calls', () => {
    const reader = openAiCompatible('openai').openStream(REQUEST);
    const calls = [{ index: 0, function: { arguments: '{"a":' } }];
    const details = [
      { type: 'reasoning.text', text: 'abc' },
      { type: 'reasoning.summary', summary: 'ab' },
      null,
    ];
    const pieces = [
      { content: 'é' },
      { reasoning_content: 'ab' },
      { reasoning_details: details },
      { tool_calls: calls },
      {},
      null,
    ];
    for (const said of pieces) {
      reader.read({ data: JSON.stringify({ choices: [{ index: 0, delta: said }] }) });
    }
    expect(reader.bytes).toBe(2 + 2 + 5 + 5);
  });

  test('a chunk with a list of parts has the text of the parts', () => {
    const parts = [
      { type: 'text', text: 'H' },
      { type: 'text', text: 'é' },
    ];
    const said = { choices: [{ index: 0, delta: { role: 'assistant', content: parts } }] };
    const reader = openAiCompatible('openai').openStream(REQUEST);
    const [chunk] = reader.read({ data: JSON.stringify(said) });
    expect(JSON.parse(chunk ?? '')).toEqual({
      choices: [{ index: 0, delta: { role: 'assistant', content: 'Hé' } }],
    });
    expect(reader.bytes).toBe(3);
  });

  test.each([
    [{ role: '', content: 'H' }, { content: 'H' }],
    [{ role: null, content: null }, { content: null }],
    [{ content: 'H', tool_calls: [] }, { content: 'H' }],
    [{ role: '', tool_calls: [{ index: 0 }] }, { tool_calls: [{ index: 0 }] }],
  ])(
    'a chunk is passed on without an empty role and without empty tool calls: %j',
    (said, left) => {
      const [chunk] = stream('groq', [
        JSON.stringify({ id: 'a', choices: [{ delta: said }] }),
      ]).chunks;
      expect(JSON.parse(chunk ?? '')).toEqual({ id: 'a', choices: [{ delta: left }] });
    },
  );

  const piece = (...tool_calls: object[]) =>
    JSON.stringify({ choices: [{ index: 0, delta: { tool_calls }, finish_reason: null }] });
  const begin = (id: string, index?: number) => ({ index, id, function: { name: 'f' } });
  const more = (index?: number) => ({ index, function: { arguments: '{}' } });

  test.each<[string, string[], (number | undefined)[]]>([
    [
      'as usual',
      [piece(begin('a', 0)), piece(more(0)), piece(begin('b', 1)), piece(more(1))],
      [0, 0, 1, 1],
    ],
    [
      'all at the first position',
      [piece(begin('a', 0)), piece(more(0)), piece(begin('b', 0)), piece(more(0))],
      [0, 0, 1, 1],
    ],
    ['without positions', [piece(begin('a'), begin('b')), piece(more())], [0, 1, 1]],
    ['from the second position on', [piece(begin('a', 1)), piece(more(1))], [0, 0]],
    [
      'with the id and the name in each piece',
      [piece(begin('a', 0)), piece(begin('a', 0))],
      [0, 0],
    ],
    [
      'with another id in each piece',
      [piece(begin('a', 0)), piece({ ...more(0), id: 'b' })],
      [0, 0],
    ],
  ])('the calls of a stream have positions of their own: %s', (_how, events, positions) => {
    const chunks = stream('openai', [...events, END, '[DONE]']).chunks.map((text) =>
      JSON.parse(text),
    );
    const calls = chunks.flatMap(({ choices: [{ delta: said }] }) => said.tool_calls ?? []);
    expect(calls.map(({ index }) => index)).toEqual(positions);
    expect(chunks.at(-1).choices[0].finish_reason).toBe('tool_calls');
  });

  test('a call of a stream without an id gets one', () => {
    const [chunk] = stream('openai', [piece({ index: 0, id: '', function: { name: 'f' } })]).chunks;
    expect(JSON.parse(chunk ?? '').choices[0].delta.tool_calls[0].id).toMatch(/^call_./);
  });

  test('an event that is neither a chunk nor an error is not passed on', () => {
    const events = ['{"type":"ping"}', '{}', delta('H'), '{"choices":null}', END, '[DONE]'];
    expect(stream('openai', events).chunks).toEqual([delta('H'), END]);
  });

  test('a stream without a chunk is garbage', () => {
    for (const events of [['[DONE]'], [JSON.stringify({ detail: SAID }), '[DONE]']]) {
      expect(failureOf(() => stream('openai', events)).failure).toBe('garbage');
    }
  });

  test("a stream's usage is found in Groq's field, and beside a last piece of text", () => {
    const last = delta('', { x_groq: { id: 'req', usage: USAGE } });
    expect(stream('groq', [delta('Hi'), last, '[DONE]'])).toMatchObject({
      chunks: [delta('Hi'), last],
      usage: used,
    });
    const beside = delta('!', { usage: USAGE });
    expect(stream('openrouter', [beside])).toMatchObject({ chunks: [beside], usage: used });
  });

  test('a stream keeps the last valid usage', () => {
    const events = [USED, delta('H', { usage: null }), delta('i', { usage: { total_tokens: 1 } })];
    expect(stream('minimax', events)).toMatchObject({ usage: used });
  });

  test('a stream is complete with [DONE] or a finish reason, and not before', () => {
    expect(stream('openai', [delta('H')])).toMatchObject({ ended: false, over: false });
    expect(stream('openai', [delta('H'), END])).toMatchObject({ ended: true, over: false });
    expect(stream('openai', [delta('H'), '[DONE]'])).toMatchObject({ ended: true, over: true });
  });

  test.each(['', '{', 'null', '"x"', '[]', 'sk-test', '{"choices":{}}', '{"choices":[1]}'])(
    'a stream with the data %j is garbage',
    (data) => {
      expect(failureOf(() => stream('openai', [delta('H'), data])).failure).toBe('garbage');
    },
  );

  test.each<[ProviderName, object, string]>([
    ['openrouter', { error: { code: 502, message: SAID } }, 'overloaded'],
    [
      'openrouter',
      {
        error: { code: 429, message: SAID },
        choices: [{ delta: { content: '' }, finish_reason: 'error' }],
      },
      'rate_limited',
    ],
    ['openai', { error: { type: 'server_error', message: SAID } }, 'overloaded'],
    ['openai', { error: SAID }, 'overloaded'],
    [
      'openai',
      { object: 'error', message: SAID, type: 'BadRequestError', code: 400 },
      'overloaded',
    ],
    ['openai', { type: 'error', message: SAID, status: 429 }, 'rate_limited'],
    ['openrouter', { choices: [{ delta: {}, error: { code: 502 } }] }, 'overloaded'],
    ['openrouter', { choices: [{ delta: {}, error: SAID }] }, 'overloaded'],
    ['openrouter', { choices: [{ delta: {}, finish_reason: 'error' }] }, 'overloaded'],
    ['groq', { choices: [{ delta: {} }], x_groq: { error: SAID } }, 'overloaded'],
    ['minimax', { base_resp: { status_code: 1027, status_msg: SAID } }, 'refused'],
    ['minimax', { choices: null, base_resp: { status_code: 1002 } }, 'rate_limited'],
  ])('a stream of %s fails with an error that it contains: %j', (name, event, failure) => {
    const events = [delta('H'), JSON.stringify(event)];
    expect(failureOf(() => stream(name, events)).failure).toBe(failure);
  });

  test('a stream fails with an event that is named as an error', () => {
    const reader = openAiCompatible('openai').openStream(REQUEST);
    const data = JSON.stringify({ message: SAID, code: 429 });
    expect(failureOf(() => reader.read({ event: 'error', data })).failure).toBe('rate_limited');
  });
});

describe('error status', () => {
  const error = (name: ProviderName, status: number, body: unknown, headers = {}) =>
    failureOf(() => {
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      throw openAiCompatible(name).readError(status, new Headers(headers), text);
    });

  test.each<[ProviderName, number, unknown, string]>([
    ['openai', 401, { error: { code: 'invalid_api_key', message: SAID } }, 'bad_key'],
    ['openai', 403, {}, 'bad_key'],
    ['openai', 429, { error: { code: 'insufficient_quota', message: SAID } }, 'bad_key'],
    ['openai', 429, { error: { type: 'insufficient_quota', code: null } }, 'bad_key'],
    ['openai', 429, { error: { code: 'rate_limit_exceeded', message: SAID } }, 'rate_limited'],
    ['openai', 400, { error: { code: 'context_length_exceeded', message: SAID } }, 'too_long'],
    ['openai', 400, { error: { code: 'content_policy_violation' } }, 'refused'],
    ['openai', 400, { error: { code: null, type: 'invalid_request_error' } }, 'bad_request'],
    ['openai', 404, { error: { code: 'model_not_found', message: SAID } }, 'unknown_model'],
    ['openai', 500, { error: { type: 'server_error', message: SAID } }, 'overloaded'],
    ['openai', 503, 'Service Unavailable', 'overloaded'],
    ['groq', 413, { error: { code: 'request_too_large' } }, 'too_long'],
    ['groq', 413, { error: { code: 'rate_limit_exceeded', type: 'tokens' } }, 'rate_limited'],
    ['groq', 422, '', 'bad_request'],
    ['groq', 400, { error: { code: 'tool_use_failed', failed_generation: SAID } }, 'garbage'],
    ['openai', 429, { error: { code: 'billing_not_active', message: SAID } }, 'bad_key'],
    ['openrouter', 402, { error: { code: 402, message: SAID } }, 'bad_key'],
    ['openrouter', 403, { error: { code: 403, metadata: { reasons: [SAID] } } }, 'refused'],
    ['openrouter', 400, { error: { code: 400, metadata: null } }, 'bad_request'],
    ['openrouter', 400, { error: { metadata: { provider_name: 'A', raw: SAID } } }, 'overloaded'],
    ['openrouter', 408, '', 'timeout'],
    ['openrouter', 404, { error: { code: 404 } }, 'unknown_model'],
    ['openrouter', 502, { error: { code: 502 } }, 'overloaded'],
    ['openrouter', 529, '<html>', 'overloaded'],
    ['openai', 418, '{"error":"sk-te', 'bad_request'],
  ])('an error of %s with status %d and body %j is %s', (name, status, body, failure) => {
    expect(error(name, status, body)).toMatchObject({ provider: name, failure, status });
  });

  test('an error has the wait from Retry-After', () => {
    expect(error('groq', 429, '', { 'retry-after': '7' }).retryAfterMs).toBe(7_000);
    expect(error('groq', 429, '').retryAfterMs).toBeUndefined();
  });
});
