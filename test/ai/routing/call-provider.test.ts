import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { PROVIDER_NAMES, type ProviderName } from '../../../src/ai/completion/provider-names.js';
import { requestStream } from '../../../src/ai/routing/call-provider.js';
import {
  chunk,
  sendEvents,
  startAiProviders,
  streamOf,
  type AiProviders,
} from '../../support/ai-providers.js';

let providers: AiProviders;
beforeAll(async () => {
  providers = await startAiProviders();
});
afterEach(() => providers.behave());
afterAll(() => providers.close());

const MODEL = 'some-model';

function streamFrom(name: ProviderName, timeoutMs = 30_000) {
  return requestStream({
    name,
    provider: {
      baseUrl: providers.env(name)[`${name.toUpperCase()}_BASE_URL`] ?? '',
      apiKey: 'key',
    },
    request: { model: MODEL, messages: [{ role: 'user', content: 'Hello' }], stream: true },
    timeoutMs,
    signal: new AbortController().signal,
  });
}

/** Returns the chunks of a stream, and the usage that it reported. */
async function chunksOf(name: ProviderName, timeoutMs?: number) {
  const stream = await streamFrom(name, timeoutMs);
  const chunks: string[] = [];
  for await (const chunk of stream.chunks) chunks.push(chunk);
  return { chunks: chunks.map((chunk) => JSON.parse(chunk)), usage: stream.usage() };
}

/** Returns a whole stream as text. */
const textOf = (name: ProviderName): string =>
  streamOf(name, MODEL, `hello from ${name}`)
    .map(({ event, data }) => {
      const text = typeof data === 'string' ? data : JSON.stringify(data);
      return `${event === undefined ? '' : `event: ${event}\n`}data: ${text}\n\n`;
    })
    .join('');

function sends(name: ProviderName, ...pieces: readonly (string | number)[]): void {
  providers.behave(name, async (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const piece of pieces) {
      if (typeof piece === 'number') await delay(piece);
      else response.write(piece);
    }
    response.end();
  });
}

describe('the end of a stream', () => {
  const used = { inputTokens: 3, outputTokens: 2 };

  test.each(PROVIDER_NAMES)(
    'the last event of %s counts without a blank line after it, and without a line break',
    async (name) => {
      const whole = await chunksOf(name);
      for (const cut of [1, 2]) {
        sends(name, textOf(name).slice(0, -cut));
        const { chunks, usage } = await chunksOf(name);
        expect([chunks.length, usage]).toEqual([whole.chunks.length, used]);
      }
    },
  );

  test('a usage in the last line counts without a line break after it', async () => {
    sends('openai', textOf('openai').replace(/\n\ndata: \[DONE\]\n\n$/, ''));
    expect((await chunksOf('openai')).usage).toEqual(used);
  });

  test('an event that is cut off is no event', async () => {
    sends('openai', textOf('openai').replace(/,"total_tokens.*$/s, ''));
    expect(await chunksOf('openai')).toMatchObject({ usage: undefined });
    sends('openai', textOf('openai').slice(0, 40));
    await expect(chunksOf('openai')).rejects.toMatchObject({ failure: 'unreachable' });
  });
});

describe('a provider at work', () => {
  const comments = (count: number) =>
    Array.from({ length: count }, () => [': OPENROUTER PROCESSING\n\n', 150]).flat();

  test('comments before the first event extend the timeout', async () => {
    sends('openrouter', ...comments(8), textOf('openrouter'));
    expect((await chunksOf('openrouter', 600)).usage).toEqual({ inputTokens: 3, outputTokens: 2 });
  });

  test('an event without data is none', async () => {
    sends(
      'openai',
      'data:\n\n',
      textOf('openai').replace('data: [DONE]', 'data: \n\ndata: [DONE]'),
    );
    expect((await chunksOf('openai')).usage).toEqual({ inputTokens: 3, outputTokens: 2 });
  });

  test('a provider that is silent after a comment times out', async () => {
    sends('openrouter', ...comments(1), 1_500, textOf('openrouter'));
    await expect(chunksOf('openrouter', 400)).rejects.toMatchObject({ failure: 'timeout' });
  });
});

describe('the bound of bytes between two events', () => {
  const MIB = 1024 * 1024;
  const comment = (bytes: number) => `:${'x'.repeat(bytes - 2)}\n`;
  const quiet = (mib: number) => Array<string>(mib).fill(comment(MIB));

  test('an event is read after 63 MiB of comments, any number of times', async () => {
    const [first = '', ...rest] = textOf('openai').split(/(?<=\n\n)/);
    sends('openai', ...quiet(63), first, ...quiet(63), ...rest);
    expect((await chunksOf('openai')).usage).toEqual({ inputTokens: 3, outputTokens: 2 });
  });

  test('a stream of more than 64 MiB without an event ends as garbage', async () => {
    sends('openai', ...quiet(65), textOf('openai'));
    await expect(chunksOf('openai')).rejects.toMatchObject({ failure: 'garbage' });
  });
});

describe('the beginning of a stream', () => {
  /** Events of a provider before the first output. */
  function silentEvents(name: ProviderName) {
    if (name === 'gemini') return [{ data: { candidates: [{ content: { parts: [] } }] } }];
    if (name === 'anthropic') return streamOf(name, MODEL, 'hello').slice(0, 2);
    return [chunk(MODEL, { role: 'assistant' }), chunk(MODEL, { content: '' })];
  }

  test.each(PROVIDER_NAMES)('a stream of %s begins with its first output', async (name) => {
    const events = [...silentEvents(name), ...streamOf(name, MODEL, 'hello').slice(0, 3)];
    providers.behave(name, (_request, response) => sendEvents(response, events, false));
    const { chunks } = await streamFrom(name);
    const { value = '' } = await chunks.next();
    expect(JSON.parse(value).choices[0].delta.role).toBe('assistant');
    await chunks.return(undefined);
  });

  test.each(PROVIDER_NAMES)(
    'an error and a broken connection before the first output fail the request of %s',
    async (name) => {
      const error = { data: { type: 'error', error: { type: 'overloaded_error', code: 529 } } };
      for (const [further, end, failure] of [
        [[error], true, 'overloaded'],
        [[], true, 'unreachable'],
      ] as const) {
        providers.behave(name, (_request, response) =>
          sendEvents(response, [...silentEvents(name), ...further], end),
        );
        await expect(streamFrom(name)).rejects.toMatchObject({ failure });
      }
    },
  );

  test('output of an unknown kind begins a stream at 64 Ki characters', async () => {
    const image = { images: [{ type: 'image_url', image_url: { url: 'x'.repeat(64 * 1024) } }] };
    providers.behave('openrouter', (_request, response) =>
      sendEvents(response, [chunk(MODEL, image)], false),
    );
    const { chunks } = await streamFrom('openrouter');
    expect(JSON.parse((await chunks.next()).value ?? '').choices[0].delta).toEqual(image);
    await chunks.return(undefined);
  });

  test('an empty answer is returned complete', async () => {
    const events = [chunk(MODEL, { role: 'assistant' }), chunk(MODEL, {}, 'stop')];
    providers.behave('openai', (_request, response) => sendEvents(response, events));
    expect((await chunksOf('openai')).chunks).toEqual(events.map(({ data }) => data));
  });
});

describe('an error as the first event', () => {
  const forms = [
    '{"error":"no"}',
    '{"object":"error","message":"no","code":400}',
    '{"detail":"no"}',
  ];

  test.each(PROVIDER_NAMES)('an error of any form fails the request of %s', async (name) => {
    for (const form of forms) {
      for (const event of [`data: ${form}`, `event: error\ndata: ${form}`, form]) {
        for (const end of ['', '\n\n', '\n\ndata: [DONE]\n\n']) {
          sends(name, `${event}${end}`);
          await expect(chunksOf(name)).rejects.toMatchObject({
            failure: expect.stringMatching(/^(overloaded|garbage|unreachable)$/),
          });
        }
      }
    }
  });
});
