import { describe, expect, test } from 'vitest';
import type { ChatMessage, ChatRequest } from '../../../src/ai/completion/completion.js';
import { gemini } from '../../../src/ai/providers/gemini/gemini.js';

const PROVIDER = {
  baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
  apiKey: 'key-of-this-test',
};
const HELLO: ChatMessage = { role: 'user', content: 'Hello' };

const wire = (request: Partial<ChatRequest> = {}) =>
  gemini.request(PROVIDER, { model: 'gemini-2.5-flash', messages: [HELLO], ...request });

function sent(request: Partial<ChatRequest> = {}): ReturnType<typeof JSON.parse> {
  return JSON.parse(wire(request).body);
}

const refused = expect.objectContaining({ provider: 'gemini', failure: 'bad_request' });

const tool = (name: string, parameters?: object) => ({
  type: 'function',
  function: { name, description: `does ${name}`, strict: true, ...(parameters && { parameters }) },
});

const call = (id: string, name: string, json: string, signature?: string) => ({
  id,
  type: 'function',
  function: { name, arguments: json },
  ...(signature !== undefined && {
    extra_content: { google: { thought_signature: signature } },
  }),
});

describe('URL', () => {
  test('the URL names the model and the method, and the key is in a header', () => {
    const { url, headers } = wire();
    expect(url).toBe(
      'https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent',
    );
    expect(headers).toEqual({
      'content-type': 'application/json',
      'x-goog-api-key': 'key-of-this-test',
    });
  });

  test('a streaming request has a URL that requests server-sent events', () => {
    expect(wire({ stream: true }).url).toMatch(
      /\/models\/gemini-2\.5-flash:streamGenerateContent\?alt=sse$/,
    );
  });

  test('a model name is escaped in the URL', () => {
    expect(wire({ model: '../files?x=1#y z' }).url).toMatch(
      /\/v1beta\/models\/\.\.%2Ffiles%3Fx%3D1%23y%20z:generateContent$/,
    );
  });

  test('a model name with broken UTF-16 fails as unknown_model', () => {
    expect(() => wire({ model: 'gemini-\ud800' })).toThrow(
      expect.objectContaining({ failure: 'unknown_model' }),
    );
  });

  test('sends no key header if the provider has no API key', () => {
    const { headers } = gemini.request(
      { ...PROVIDER, apiKey: undefined },
      { model: 'gemini-2.5-flash', messages: [HELLO] },
    );
    expect(headers).not.toHaveProperty('x-goog-api-key');
  });
});

describe('messages', () => {
  test('the smallest request contains only the text', () => {
    expect(sent()).toEqual({
      contents: [{ role: 'user', parts: [{ text: 'Hello' }] }],
      generationConfig: {},
    });
  });

  test('system and developer messages become the system instruction, in their order', () => {
    const body = sent({
      messages: [
        { role: 'system', content: 'Be short.' },
        HELLO,
        { role: 'assistant', content: 'Hi' },
        { role: 'developer', content: [{ type: 'text', text: 'Be kind.' }] },
        { role: 'user', content: [{ type: 'text', text: 'And?' }] },
      ],
    });
    expect(body.systemInstruction).toEqual({
      parts: [{ text: 'Be short.' }, { text: 'Be kind.' }],
    });
    expect(body.contents).toEqual([
      { role: 'user', parts: [{ text: 'Hello' }] },
      { role: 'model', parts: [{ text: 'Hi' }] },
      { role: 'user', parts: [{ text: 'And?' }] },
    ]);
  });

  test('text of any script is sent unchanged', () => {
    const content = 'Grüße, 世界 👩‍👩‍👧‍👦 \u0000 \u2028 "\\" عربى';
    expect(sent({ messages: [{ role: 'user', content }] }).contents[0].parts).toEqual([
      { text: content },
    ]);
  });

  test('images are sent as inline data or as a URL', () => {
    const urls = [
      'data:image/png;base64,iVBORw0KGgo=',
      'data:image/webp;charset=utf-8;base64,PHN2Zz4=',
      'https://example.com/a/cat.JPEG?size=1',
      'https://example.com/cat',
    ];
    const { contents } = sent({
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this?' },
            ...urls.map((url) => ({ type: 'image_url', image_url: { url, detail: 'low' } })),
          ],
        },
      ],
    });
    expect(contents[0].parts).toEqual([
      { text: 'What is this?' },
      { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } },
      { inlineData: { mimeType: 'image/webp', data: 'PHN2Zz4=' } },
      { fileData: { fileUri: 'https://example.com/a/cat.JPEG?size=1', mimeType: 'image/jpeg' } },
      { fileData: { fileUri: 'https://example.com/cat' } },
    ]);
  });

  test.each([
    ['a role that is not known', [{ role: 'critic', content: 'Hm' }]],
    ['content that is a number', [{ role: 'user', content: 5 }]],
    ['a part of a kind that is not known', [{ role: 'user', content: [{ type: 'smell' }] }]],
    ['an image among the instructions', [{ role: 'system', content: [{ type: 'image_url' }] }]],
    ['the result of a call that was not made', [{ role: 'tool', tool_call_id: 'a', content: '' }]],
    [
      'arguments that are nested too deeply to be written',
      [
        HELLO,
        {
          role: 'assistant',
          tool_calls: [call('a', 'f', `{"x":${'['.repeat(50_000)}${']'.repeat(50_000)}}`)],
        },
      ],
    ],
    ...[
      'data:image/png,raw',
      'data:;base64,AAAA',
      'data:image/png;base64',
      'data:application/pdf;base64,AAAA',
      'data:video/mp4;base64,AAAA',
      'gs://bucket/cat.webp',
      'file:///etc/passwd',
      '',
    ].map((url): [string, ChatMessage[]] => [
      `an image at "${url}"`,
      [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
    ]),
  ])('refuses a request with %s', (_what, messages: readonly ChatMessage[]) => {
    expect(() => wire({ messages })).toThrow(refused);
  });

  test.each([
    ['only instructions', [{ role: 'system', content: 'Be short.' }]],
    ['a user who says nothing', [{ role: 'system', content: null }, { role: 'user' }]],
  ])('%s get a turn of the user', (_what, messages: readonly ChatMessage[]) => {
    expect(sent({ messages }).contents).toEqual([{ role: 'user', parts: [{ text: '(no text)' }] }]);
  });

  test('the error of a refused request does not contain its content', () => {
    const secret = 'my secret prompt';
    try {
      wire({ messages: [{ role: 'user', content: [{ type: 'text', text: [secret] }] }] });
      expect.unreachable();
    } catch (error) {
      expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain(secret);
    }
  });
});

describe('tools', () => {
  const TURN: readonly ChatMessage[] = [
    { role: 'user', content: 'Weather in Paris and Kyiv?' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [
        call('call_1', 'weather', '{"city":"Paris"}', 'c2lnbmF0dXJl'),
        call('call_2', 'weather', '{"city":"Київ","días":[1,2.5,null]}'),
        call('call_3', 'now', ''),
      ],
    },
    { role: 'tool', tool_call_id: 'call_1', content: '{"degrees":21}' },
    { role: 'tool', tool_call_id: 'call_2', content: [{ type: 'text', text: '19 °C' }] },
    { role: 'tool', tool_call_id: 'call_3', content: '[1,2]' },
    { role: 'user', content: 'Thanks' },
  ];

  test('calls and results are sent back, with the results of one turn in one message', () => {
    expect(sent({ messages: TURN }).contents).toEqual([
      { role: 'user', parts: [{ text: 'Weather in Paris and Kyiv?' }] },
      {
        role: 'model',
        parts: [
          {
            functionCall: { id: 'call_1', name: 'weather', args: { city: 'Paris' } },
            thoughtSignature: 'c2lnbmF0dXJl',
          },
          {
            functionCall: {
              id: 'call_2',
              name: 'weather',
              args: { city: 'Київ', días: [1, 2.5, null] },
            },
          },
          { functionCall: { id: 'call_3', name: 'now', args: {} } },
        ],
      },
      {
        role: 'user',
        parts: [
          { functionResponse: { id: 'call_1', name: 'weather', response: { degrees: 21 } } },
          { functionResponse: { id: 'call_2', name: 'weather', response: { result: '19 °C' } } },
          { functionResponse: { id: 'call_3', name: 'now', response: { result: '[1,2]' } } },
        ],
      },
      { role: 'user', parts: [{ text: 'Thanks' }] },
    ]);
  });

  test.each([
    ['{"x":', { invalid_json: '{"x":' }],
    ['[1]', { invalid_json: '[1]' }],
    [' ', {}],
  ])('arguments that are no JSON object are sent as a value: %j', (json, args) => {
    const messages = [
      HELLO,
      { role: 'assistant', tool_calls: [call('a', 'f', json)] },
      { role: 'tool', tool_call_id: 'a', content: 'x' },
    ];
    expect(sent({ messages }).contents[1].parts[0].functionCall.args).toEqual(args);
  });

  test('images of a result follow its response', () => {
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };
    const { contents } = sent({
      messages: [
        HELLO,
        { role: 'assistant', tool_calls: [call('a', 'f', '{}')] },
        { role: 'tool', tool_call_id: 'a', content: [{ type: 'text', text: 'a map' }, image] },
      ],
    });
    expect(contents[2].parts).toEqual([
      { functionResponse: { id: 'a', name: 'f', response: { result: 'a map' } } },
      { inlineData: { mimeType: 'image/png', data: 'AAAA' } },
    ]);
  });

  test('sends a result with a reference as text, because Gemini would read the reference as one to an image', () => {
    const content = '{"schema":{"items":{"$ref":"#/$defs/Item"}}}';
    const { contents } = sent({
      messages: [
        HELLO,
        { role: 'assistant', tool_calls: [call('a', 'f', '{}')] },
        { role: 'tool', tool_call_id: 'a', content },
      ],
    });
    expect(contents[2].parts[0].functionResponse.response).toEqual({ result: content });
  });

  test('results of different turns stay in separate messages', () => {
    const assistant = (id: string) => ({ role: 'assistant', tool_calls: [call(id, 'f', '{}')] });
    const { contents } = sent({
      messages: [
        HELLO,
        assistant('a'),
        { role: 'tool', tool_call_id: 'a', content: 'x' },
        assistant('b'),
        { role: 'tool', tool_call_id: 'b', content: '{not json' },
      ],
    });
    expect(contents.map(({ role }: { role: string }) => role)).toEqual([
      'user',
      'model',
      'user',
      'model',
      'user',
    ]);
    expect(contents[4].parts).toEqual([
      { functionResponse: { id: 'b', name: 'f', response: { result: '{not json' } } },
    ]);
  });

  test('calls of another provider are marked with a dummy signature for models that require signatures', () => {
    const messages = [
      HELLO,
      {
        role: 'assistant',
        content: 'Let me see.',
        tool_calls: [
          { ...call('toolu_1', 'f', '{}'), extra_content: { other: 'sign' } },
          call('toolu_2', 'f', '{}'),
        ],
      },
    ];
    const signatures = (model: string) =>
      sent({ model, messages }).contents[1].parts.map(
        (part: { thoughtSignature?: string }) => part.thoughtSignature,
      );
    expect(signatures('gemini-3.8-flash')).toEqual([
      undefined,
      'skip_thought_signature_validator',
      undefined,
    ]);
    expect(signatures('gemini-2.5-flash')).toEqual([undefined, undefined, undefined]);
  });

  test("a call's own signature is not replaced", () => {
    const [, { parts }] = sent({ model: 'gemini-3.8-flash', messages: TURN }).contents;
    expect(parts.map((part: { thoughtSignature?: string }) => part.thoughtSignature)).toEqual([
      'c2lnbmF0dXJl',
      undefined,
      undefined,
    ]);
  });

  test('any JSON schema of a tool is passed through unchanged', () => {
    const parameters = {
      type: 'object',
      $defs: { größe: { type: ['number', 'null'], minimum: -0.5, 'x-unknown': { deep: ['☃'] } } },
      properties: { größe: { $ref: '#/$defs/größe' }, when: { format: 'date-time' } },
      additionalProperties: false,
    };
    expect(sent({ tools: [tool('set', parameters), tool('now')] }).tools).toEqual([
      {
        functionDeclarations: [
          { name: 'set', description: 'does set', parametersJsonSchema: parameters },
          { name: 'now', description: 'does now' },
        ],
      },
    ]);
  });

  test('references of a schema are sent as Gemini accepts them', () => {
    const parameters = {
      type: 'object',
      properties: {
        a: { $ref: '#/definitions/A', title: 'A', nullable: true, description: 'one' },
        same: { $ref: '#/properties/list/items' },
        list: { type: 'array', items: { type: 'string' } },
        none: { $ref: '#/definitions/None', title: 'none' },
        all: { $ref: '#', default: null, title: 'all' },
      },
      definitions: {
        A: { type: 'object', properties: { b: { $ref: '#/definitions/B' } } },
        B: { anyOf: [{ $ref: '#/definitions/A' }, { type: 'null' }] },
      },
    };
    const schema = {
      properties: {
        a: { $ref: '#/$defs/definitions_A', description: 'one' },
        same: { $ref: '#/$defs/properties_list_items' },
        list: { type: 'array', items: { type: 'string' } },
        none: { title: 'none' },
        all: { $ref: '#', default: null },
      },
      $defs: {
        definitions_A: {
          type: 'object',
          properties: { b: { $ref: '#/$defs/definitions_B' } },
        },
        definitions_B: { anyOf: [{ $ref: '#/$defs/definitions_A' }, { type: 'null' }] },
        properties_list_items: { type: 'string' },
      },
    };
    const [{ functionDeclarations }] = sent({ tools: [tool('set', parameters)] }).tools;
    const { parametersJsonSchema } = functionDeclarations[0];
    expect(parametersJsonSchema).toMatchObject(schema);
    expect(parametersJsonSchema.properties).toEqual(schema.properties);
    const format = { type: 'json_schema', json_schema: { schema: parameters } };
    const { generationConfig } = sent({ response_format: format });
    expect(generationConfig.responseJsonSchema).toMatchObject(schema);
  });

  test('references that name one another are followed once each', () => {
    const chain = Array.from({ length: 20_000 }, (_, at) => [
      `D${at}`,
      { $ref: `#/definitions/D${at + 1}`, title: 'next' },
    ]);
    const parameters = {
      type: 'object',
      properties: { first: { $ref: '#/definitions/D0' } },
      definitions: Object.fromEntries(chain),
    };
    const [{ functionDeclarations }] = sent({ tools: [tool('set', parameters)] }).tools;
    expect(Object.keys(functionDeclarations[0].parametersJsonSchema.$defs)).toHaveLength(20_000);
  });

  test.each([
    ['auto', { mode: 'AUTO' }],
    ['none', { mode: 'NONE' }],
    ['required', { mode: 'ANY' }],
    [
      { type: 'function', function: { name: 'now' } },
      { mode: 'ANY', allowedFunctionNames: ['now'] },
    ],
  ])('sends the tool choice %j', (choice, functionCallingConfig) => {
    expect(sent({ tools: [tool('now')], tool_choice: choice }).toolConfig).toEqual({
      functionCallingConfig,
    });
  });

  test('a tool choice without tools is left out, and refused if it is required', () => {
    expect(sent({ tools: [], tool_choice: 'auto' })).not.toHaveProperty('toolConfig');
    expect(sent({ tools: [] })).not.toHaveProperty('tools');
    expect(() => wire({ tool_choice: 'required' })).toThrow(refused);
  });

  test('refuses tools and choices of unknown kinds', () => {
    expect(() => wire({ tools: [{ type: 'custom', custom: { name: 'x' } }] })).toThrow(refused);
    expect(() => wire({ tools: [tool('now')], tool_choice: 'maybe' })).toThrow(refused);
  });
});

describe('settings', () => {
  test("OpenAI settings are translated to Gemini's names, and those that only OpenAI supports left out", () => {
    expect(
      sent({
        max_tokens: 100,
        max_completion_tokens: null as unknown as undefined,
        temperature: 0,
        top_p: 0.9,
        stop: 'END',
        seed: 7,
        presence_penalty: 0.5,
        frequency_penalty: -0.5,
        n: 1,
        user: 'somebody',
        logit_bias: {},
        store: true,
        parallel_tool_calls: true,
        stream_options: { include_usage: true },
      }),
    ).toEqual({
      contents: [{ role: 'user', parts: [{ text: 'Hello' }] }],
      generationConfig: {
        maxOutputTokens: 100,
        temperature: 0,
        topP: 0.9,
        stopSequences: ['END'],
        seed: 7,
      },
    });
  });

  test('penalties are sent only to models that accept them', () => {
    const penalties = { presence_penalty: 0.5, frequency_penalty: -0.5 };
    const config = (model: string) => sent({ model, ...penalties }).generationConfig;
    expect(config('gemini-2.0-flash')).toEqual({ presencePenalty: 0.5, frequencyPenalty: -0.5 });
    expect(config('gemini-2.5-flash')).toEqual({});
  });

  test('max_completion_tokens takes precedence over max_tokens', () => {
    const { generationConfig } = sent({ max_tokens: 100, max_completion_tokens: 50 });
    expect(generationConfig).toEqual({ maxOutputTokens: 50 });
  });

  test('a JSON answer can be requested, with a schema that is passed through unchanged', () => {
    const schema = { type: 'object', properties: { ä: { const: '☃' } }, 'x-own': [1] };
    const config = (format: object) => sent({ response_format: format }).generationConfig;
    expect(config({ type: 'text' })).toEqual({});
    expect(config({ type: 'json_object' })).toEqual({ responseMimeType: 'application/json' });
    expect(
      config({ type: 'json_schema', json_schema: { name: 'x', strict: true, schema } }),
    ).toEqual({ responseMimeType: 'application/json', responseJsonSchema: schema });
    expect(() => config({ type: 'grammar' })).toThrow(refused);
  });

  test('tools are declared by names that Gemini accepts', () => {
    const body = sent({
      tools: [tool('21st_builder'), tool('a b/c'), tool('github.issues:list')],
      tool_choice: { type: 'function', function: { name: '21st_builder' } },
    });
    expect(body.tools[0].functionDeclarations.map(({ name }: { name: string }) => name)).toEqual([
      '_21st_builder',
      'a_b_c',
      'github.issues:list',
    ]);
    expect(body.toolConfig.functionCallingConfig.allowedFunctionNames).toEqual(['_21st_builder']);
  });

  test('a JSON answer is requested beside tools only where Gemini accepts both', () => {
    const asked = { tools: [tool('f')], response_format: { type: 'json_object' } };
    const format = (model: string, more: object = {}) =>
      sent({ ...asked, model, ...more }).generationConfig.responseMimeType;
    expect(format('gemini-2.5-flash')).toBeUndefined();
    expect(format('gemini-2.5-flash', { tools: [] })).toBe('application/json');
    expect(format('gemini-3.8-flash')).toBe('application/json');
    expect(format('gemini-3.8-flash', { tool_choice: 'required' })).toBeUndefined();
  });

  test('a seed becomes the 32 bits that Gemini accepts', () => {
    expect(sent({ seed: 2 ** 40 + 7 }).generationConfig).toEqual({ seed: 7 });
  });

  test("Gemini's own settings are passed through, except limits that have an OpenAI name", () => {
    const safetySettings = [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_ONLY_HIGH' }];
    const body = sent({
      max_tokens: 10,
      generationConfig: {
        maxOutputTokens: 99_999,
        candidateCount: 8,
        topK: 5,
        thinkingConfig: { thinkingBudget: 0 },
      },
      safetySettings,
      cachedContent: 'cachedContents/abc',
    });
    expect(body).toMatchObject({ safetySettings });
    expect(body).not.toHaveProperty('cachedContent');
    expect(body.generationConfig).toEqual({
      maxOutputTokens: 10,
      topK: 5,
      thinkingConfig: { thinkingBudget: 0 },
    });
    expect(() => wire({ generationConfig: 'warm' })).toThrow(refused);
  });
});
