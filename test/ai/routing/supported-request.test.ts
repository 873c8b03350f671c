// @module-tag attack
import { describe, expect, test } from 'vitest';
import type { ChatBody } from '../../../src/ai/completion/completion.js';
import { supportedRequest, UnsupportedError } from '../../../src/ai/routing/supported-request.js';

const HELLO = { role: 'user', content: 'hello' };
const asking = (more: object): ChatBody => ({ messages: [HELLO], ...more });
const parts = (...content: unknown[]): ChatBody => ({
  messages: [HELLO, { role: 'user', content }],
});

/** Returns the name of the field that is refused, or undefined. */
function refusedIn(body: ChatBody): unknown {
  try {
    supportedRequest(body);
  } catch (error) {
    if (!(error instanceof UnsupportedError)) throw error;
    expect([error.status, error.code]).toEqual([400, 'unsupported_parameter']);
    expect(error.message).toContain(String(error.facts.param));
    return error.facts.param;
  }
  return undefined;
}

describe('refuses by name a field that could cost more than the held amount', () => {
  test.each([
    ['web_search_options', {}],
    ['web_search_options', { search_context_size: 'high' }],
    ['service_tier', 'priority'],
    ['service_tier', 'flex'],
    ['store', true],
    ['store', 'false'],
    ['plugins', [{ id: 'web' }]],
    ['plugins', []],
    ['models', ['dear/model']],
    ['route', 'fallback'],
    ['provider', { order: ['dear'] }],
    ['preset', 'dear'],
    ['transforms', ['middle-out']],
    ['modalities', ['text', 'audio']],
    ['audio', { voice: 'alloy', format: 'wav' }],
    ['prediction', { type: 'content', content: 'x' }],
    ['mcp_servers', [{ type: 'url', url: 'https://example.com' }]],
    ['container', 'c_1'],
    ['inference_geo', 'us'],
    ['speed', 'fast'],
    ['system', 'x'],
    ['cachedContent', 'cachedContents/abc'],
    ['search_settings', {}],
    ['documents', [{}]],
    ['compound_custom', {}],
    ['x_unknown', 1],
    ['toString', 1],
    ['constructor', {}],
  ])('%s: %j', (field, value) => {
    expect(refusedIn(asking({ [field]: value }))).toBe(field);
  });

  test('__proto__', () => {
    const body: ChatBody = JSON.parse(`{"messages":[],"__proto__":{"plugins":[]}}`);
    expect(refusedIn(body)).toBe('__proto__');
  });

  test.each([
    ['generationConfig', { responseModalities: ['IMAGE'] }, 'generationConfig.responseModalities'],
    ['generationConfig', { candidateCount: 8 }, 'generationConfig.candidateCount'],
    ['stream_options', { x: 1 }, 'stream_options.x'],
    ['output_config', { task_budget: 1 }, 'output_config.task_budget'],
    ['reasoning', { effort: 'low', x: 1 }, 'reasoning.x'],
  ])('%s: %j', (field, value, named) => {
    expect(refusedIn(asking({ [field]: value }))).toBe(named);
  });

  test.each([
    [{ type: 'openrouter:web_search' }, 'tools[1].type'],
    [{ type: 'web_search_20250305', name: 'web_search' }, 'tools[1].type'],
    [{ type: 'code_interpreter', container: { type: 'auto' } }, 'tools[1].type'],
    [{ type: 'browser_search' }, 'tools[1].type'],
    [{ googleSearch: {} }, 'tools[1].type'],
    [{ type: 'mcp', server_url: 'https://example.com' }, 'tools[1].type'],
    ['web_search', 'tools[1]'],
    [null, 'tools[1]'],
    [{ type: 'function' }, 'tools[1]'],
  ])('refuses a tool that is not a client function: %j', (tool, named) => {
    const own = { type: 'function', function: { name: 'look' } };
    expect(refusedIn(asking({ tools: [own, tool] }))).toBe(named);
  });

  const part = 'messages[1].content[0]';
  test.each<readonly [unknown, string]>([
    [{ type: 'file', file: { file_id: 'file-of-somebody' } }, `${part}.type`],
    [{ type: 'file', file: { file_data: 'data:application/pdf;base64,AAAA' } }, `${part}.type`],
    [{ type: 'document', source: { type: 'url', url: 'https://example.com' } }, `${part}.type`],
    [{ type: 'image', source: { type: 'url', url: 'https://example.com' } }, `${part}.type`],
    [{ type: 'video_url', video_url: { url: 'https://example.com' } }, `${part}.type`],
    [{ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }, `${part}.type`],
    [{ type: 'search_result', source: 'https://example.com' }, `${part}.type`],
    [{ type: 'tool_result' }, `${part}.type`],
    ['hello', part],
    ...[
      'data:application/pdf;base64,AAAA',
      'data:video/mp4;base64,AAAA',
      'data:,hello',
      'gs://bucket/film.mp4',
      'file:///etc/passwd',
      'ftp://example.com/a.png',
      '//example.com/a.png',
      'https://generativelanguage.googleapis.com/v1beta/files/of-others',
      'HTTPS://me@GenerativeLanguage.googleapis.com.:443/v1beta/files/of-others',
      '',
      7,
      undefined,
    ].map((url) => [{ type: 'image_url', image_url: { url } }, `${part}.image_url.url`] as const),
    [{ type: 'image_url', image_url: 'https://example.com/a.png' }, `${part}.image_url.url`],
  ])('refuses a part that is neither text nor an image: %j', (content, named) => {
    expect(refusedIn(parts(content))).toBe(named);
  });
});

describe('fields passed on', () => {
  test('passes on the usual fields of clients unchanged', () => {
    const body = asking({
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 5,
      temperature: 0,
      top_p: 0.5,
      stop: ['END'],
      seed: 7,
      n: 2,
      logit_bias: { 50256: -100 },
      tools: [
        {
          type: 'function',
          function: {
            name: 'look',
            description: 'd',
            parameters: { type: 'object' },
            strict: true,
          },
        },
      ],
      tool_choice: 'auto',
      parallel_tool_calls: false,
      response_format: { type: 'json_object' },
      reasoning_effort: 'low',
      user: 'ada',
      reasoning: { effort: 'low' },
      thinking: { type: 'enabled', budget_tokens: 1024 },
      generationConfig: { topK: 3, thinkingConfig: { thinkingBudget: 0 } },
    });
    expect(supportedRequest(body)).toEqual(body);
  });

  test('treats a tool without a type as a function', () => {
    const tool = { function: { name: 'look' } };
    expect(supportedRequest(asking({ tools: [tool] })).tools).toEqual([
      { type: 'function', ...tool },
    ]);
  });

  test('treats null in a tool as absent, and accepts one tool of each name', () => {
    const nulls = { description: null, parameters: null, strict: null };
    const tools = ['look', 'look', 'see'].map((name) => ({
      type: 'function',
      function: { name, ...nulls },
    }));
    expect(supportedRequest(asking({ tools })).tools).toEqual([
      { type: 'function', function: { name: 'look' } },
      { type: 'function', function: { name: 'see' } },
    ]);
  });

  test.each([
    ['data:image/jpg;base64,AAAA', 'data:image/jpeg;base64,AAAA'],
    ['data:image/jpeg;base64,iVBORw0KGgo=', 'data:image/png;base64,iVBORw0KGgo='],
    ['data:IMAGE/PNG;name=a.png;base64,/9j/4AAQ', 'data:image/jpeg;base64,/9j/4AAQ'],
    ['data:image/png;base64,UklGRhAA', 'data:image/webp;base64,UklGRhAA'],
    ['data:image/heic;base64,AAAA', 'data:image/heic;base64,AAAA'],
    ['https://example.com/a.jpg', 'https://example.com/a.jpg'],
  ])('passes the image %s on with the type of its bytes', (url, sent) => {
    const image = { type: 'image_url', image_url: { url } };
    expect(supportedRequest(parts(image)).messages[1]?.content).toEqual([
      { type: 'image_url', image_url: { url: sent } },
    ]);
  });

  test('drops fields that only state a default or are null', () => {
    const harmless = {
      store: false,
      service_tier: 'auto',
      modalities: ['text'],
      prompt_cache_retention: '24h',
      usage: { include: true },
      audio: null,
      web_search_options: null,
      temperature: null,
      max_tokens: undefined,
    };
    expect(supportedRequest(asking(harmless))).toEqual({ messages: [HELLO] });
    expect(supportedRequest(asking({ service_tier: 'default' }))).toEqual({ messages: [HELLO] });
  });

  test('keeps the sent fields of a message and drops those that only an answer has', () => {
    const call = { id: 'c', type: 'function', function: { name: 'look', arguments: '{}' } };
    const said = { role: 'assistant', content: null, tool_calls: [call], reasoning_content: 'hm' };
    const result = { role: 'tool', tool_call_id: 'c', content: 'seen', name: 'look' };
    const got = { audio: { id: 'audio_of_somebody' }, annotations: [], executed_tools: [{}] };
    const { messages } = supportedRequest({ messages: [HELLO, { ...said, ...got }, result] });
    expect(messages).toEqual([HELLO, said, result]);
  });

  test('keeps the known fields of a part and a tool', () => {
    const cache_control = { type: 'ephemeral' };
    const kept = [
      { type: 'text', text: 'what is this?', cache_control },
      { type: 'image_url', image_url: { url: 'https://example.com/a.png', detail: 'low' } },
      { type: 'image_url', image_url: { url: 'https://storage.googleapis.com/bucket/a.png' } },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
      { type: 'refusal', refusal: 'no' },
    ];
    const long = { cache_control: { type: 'ephemeral', ttl: '1h' } };
    const more = kept.map((part, n) => ({ ...part, x: 1, ...(n === 0 && long) }));
    expect(supportedRequest(parts(...more)).messages[1]?.content).toEqual(kept);
    const tool = { type: 'function', function: { name: 'look' }, cache_control };
    const declared = { ...tool, ...long, defer_loading: true, allowed_callers: ['code_execution'] };
    expect(supportedRequest(asking({ tools: [declared] })).tools).toEqual([tool]);
  });
});
