import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { PROVIDER_NAMES, type ProviderName } from '../../../src/ai/completion/provider-names.js';
import { requestStream } from '../../../src/ai/routing/ask-provider.js';
import { startAiProviders, streamOf, type AiProviders } from '../../support/ai-providers.js';

let providers: AiProviders;
beforeAll(async () => {
  providers = await startAiProviders();
});
afterEach(() => providers.behave());
afterAll(() => providers.close());

const MODEL = 'some-model';

/** Returns the chunks of a stream, and the usage that it reported. */
async function chunksOf(name: ProviderName, timeoutMs = 30_000) {
  const stream = await requestStream({
    name,
    provider: {
      baseUrl: providers.env(name)[`${name.toUpperCase()}_BASE_URL`] ?? '',
      apiKey: 'key',
    },
    request: { model: MODEL, messages: [{ role: 'user', content: 'Hello' }], stream: true },
    timeoutMs,
    signal: new AbortController().signal,
  });
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

  test('a provider that is silent after a comment times out', async () => {
    sends('openrouter', ...comments(1), 1_500, textOf('openrouter'));
    await expect(chunksOf('openrouter', 400)).rejects.toMatchObject({ failure: 'timeout' });
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
