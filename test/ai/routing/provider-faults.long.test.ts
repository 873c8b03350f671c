import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { ProviderName } from '../../../src/ai/completion/provider-names.js';
import {
  answerOf,
  fails,
  keyOfProvider,
  sendEvents,
  silent,
  startAiProviders,
  streamOf,
  type AiBehaviour,
  type AiProviders,
} from '../../support/ai-providers.js';
import { send, type Answer } from '../../support/http.js';
import { testPlatform, type TestPlatform } from '../../support/platform.js';
import { quotaOf, startAi, subscribed, usageOf, type AiBackend } from './support.js';

/** Text that no failed answer and no log line may contain. */
const PROMPT = 'a secret question of mine';
const SAID = 'a secret answer of theirs';

const MODELS: readonly [ProviderName, string][] = [
  ['openai', 'openai/gpt-6-luna'],
  ['gemini', 'gemini/gemini-2.5-flash'],
  ['anthropic', 'anthropic/claude-haiku-5-5'],
  ['groq', 'groq/openai/gpt-oss-120b'],
  ['openrouter', 'openrouter/openai/gpt-oss-120b'],
  ['minimax', 'minimax/MiniMax-M3'],
];
const NAMES = MODELS.map(([name]) => name);

let providers: AiProviders;
let platform: TestPlatform;
let running: AiBackend | undefined;

beforeAll(async () => {
  providers = await startAiProviders();
  platform = await testPlatform({
    workers: false,
    dead: ['docker'],
    env: { ...providers.env(), AI_PROVIDER: 'openrouter' },
  });
});
afterEach(async () => {
  providers.behave();
  await running?.close();
});
afterAll(async () => {
  await platform?.close();
  await providers?.close();
});

/** Starts a backend for this test, so that failures do not affect other tests, and sends a chat. */
async function chat(
  user: string,
  behaviour: AiBehaviour,
  body: object = {},
  names: readonly ProviderName[] = NAMES,
): Promise<Answer> {
  for (const name of names) providers.behave(name, behaviour);
  running = await startAi(platform, names, { timeoutMs: 1_500 });
  const headers = { ...subscribed('collective'), 'x-user-id': user };
  return running.chat(headers, { messages: [{ role: 'user', content: PROMPT }], ...body });
}

/** Checks that the call left no usage or held quota and that its answer reveals nothing. */
async function expectNothing(user: string, answer: Answer): Promise<void> {
  expect(await usageOf(platform, user)).toEqual([]);
  expect(await quotaOf(platform, user)).toEqual({ used: 0, held: 0 });
  expectSecret(answer.text);
}

function expectSecret(...texts: string[]): void {
  const reported = [...texts, ...platform.logged].join('\n');
  for (const secret of [PROMPT, SAID, platform.internalKey, ...NAMES.map(keyOfProvider)]) {
    expect(reported).not.toContain(secret);
  }
}

const raw =
  (text: string | Buffer, type = 'application/json'): AiBehaviour =>
  (_request, response) => {
    response.writeHead(200, { 'content-type': type });
    response.end(text);
  };

/** Sends bytes without end. */
const endless =
  (piece: string, type: string): AiBehaviour =>
  async (_request, response) => {
    response.writeHead(200, { 'content-type': type });
    await pour(response, Buffer.from(piece.repeat(65_536 / piece.length)));
  };

async function pour(response: ServerResponse, block: Buffer): Promise<void> {
  const closed = once(response, 'close');
  while (!response.destroyed) {
    if (!response.write(block)) await Promise.race([closed, once(response, 'drain')]);
  }
}

const halfOf: AiBehaviour = ({ provider, model, streams }, response) => {
  if (streams) {
    sendEvents(response, streamOf(provider, model, SAID).slice(0, -2), false);
  } else {
    const text = JSON.stringify(answerOf(provider, model, SAID));
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': text.length });
    response.write(text.slice(0, -20));
  }
  setImmediate(() => response.destroy());
};

/** Breaks off before the answer is complete. */
const cutOff: AiBehaviour = ({ streams }, response) => {
  const type = streams ? 'text/event-stream' : 'application/json';
  response.writeHead(200, { 'content-type': type, 'content-length': 500 });
  response.write(`data: {"choices":[{"delta":{"content":"${SAID}`);
  setImmediate(() => response.destroy());
};

describe('a faulty answer of a provider', () => {
  test.each<[string, AiBehaviour, string]>([
    ['text that is no JSON', raw(`<html>${SAID}`), 'garbage'],
    ['JSON that is something else', raw(JSON.stringify({ said: SAID })), 'garbage'],
    ['an empty body', raw(''), 'garbage'],
    ['half of JSON', raw(`{"choices":[{"message":{"content":"${SAID}`), 'garbage'],
    ['broken UTF-8', raw(Buffer.from([0x7b, 0xff, 0xfe, 0x7d])), 'garbage'],
    ['half of what it announced', cutOff, 'unreachable'],
    ['by hanging up', (_request, response) => void response.destroy(), 'unreachable'],
    [
      'text other than HTTP',
      (_request, response) => void response.socket?.end(`${SAID}\r\n\r\n`),
      'unreachable',
    ],
    [
      'by sending us elsewhere',
      (_request, response) => void response.writeHead(307, { location: '/elsewhere' }).end(),
      'unreachable',
    ],
    ['silence until the timeout', silent, 'timeout'],
    [
      'with only a head until the time is up',
      async (request, response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.flushHeaders();
        await silent(request, response);
      },
      'timeout',
    ],
    ['without an end', endless(' ', 'application/json'), 'garbage'],
    ['a wrong key', fails(401), 'bad_key'],
    ['an overload error', fails(500), 'overloaded'],
    ['another code', fails(599), 'overloaded'],
  ])(
    'a faulty answer (%s) is a 500 that names the provider and hides the content',
    async (_what, behaviour, failure) => {
      for (const body of [{}, { stream: true }]) {
        const user = randomUUID();
        const answer = await chat(user, behaviour, { ...body, model: 'openai/gpt-6-luna' }, [
          'openai',
        ]);
        // An endless stream ends as garbage or unreachable, as it cannot be distinguished from silence.
        expect([answer.status, answer.body.error]).toEqual([
          500,
          expect.stringMatching(
            new RegExp(
              `^The AI provider openai does not answer \\((${failure}|garbage|unreachable)\\)$`,
            ),
          ),
        ]);
        if (!('stream' in body)) expect(answer.body.error).toContain(failure);
        await expectNothing(user, answer);
        await running?.close();
      }
    },
  );

  test.each(MODELS)('%s: an error inside a 200 is a failure', async (name, model) => {
    const error = { code: 503, status: 'UNAVAILABLE', type: 'overloaded_error', message: SAID };
    const inside = {
      ...(name === 'anthropic' && { type: 'error' }),
      ...(name === 'minimax' ? { base_resp: { status_code: 1001, status_msg: SAID } } : { error }),
    };
    const plan = name === 'minimax' ? 'network' : 'collective';
    for (const stream of [false, true]) {
      const user = randomUUID();
      providers.behave(name, (_request, response) =>
        stream
          ? sendEvents(response, [{ event: 'error', data: inside }])
          : raw(JSON.stringify(inside))(_request, response),
      );
      running = await startAi(platform, [name]);
      const answer = await running.chat(
        { ...subscribed(plan), 'x-user-id': user },
        { messages: [{ role: 'user', content: PROMPT }], model, stream },
      );
      expect([answer.status, answer.body.error]).toEqual([
        500,
        `The AI provider ${name} does not answer (overloaded)`,
      ]);
      await expectNothing(user, answer);
      await running.close();
    }
  });

  test.each<[string, AiBehaviour, number, string]>([
    ['too much of us', fails(429), 429, 'The AI provider openai limits its requests'],
    ['a refusal', fails(400, 'content_filter'), 400, 'The AI provider refuses to answer this'],
    [
      'too long',
      fails(400, 'context_length_exceeded'),
      400,
      'The conversation is too long for the model',
    ],
  ])(
    "reports a provider's error (%s) with a status for those who can act on it",
    async (_what, behaviour, status, error) => {
      const user = randomUUID();
      const answer = await chat(user, behaviour, { model: 'openai/gpt-6-luna' }, ['openai']);
      expect([answer.status, answer.body.error]).toEqual([status, error]);
      await expectNothing(user, answer);
    },
  );
});

describe('a fault in a begun stream', () => {
  test.each(MODELS.slice(0, 5))(
    'a stream that breaks off at %s ends with an error event',
    async (_name, model) => {
      const user = randomUUID();
      const answer = await chat(user, halfOf, { model, stream: true });
      expect(answer.status).toBe(200);
      expect(answer.text).toContain('event: delta\ndata: {"content":"a sec"}');
      expect(answer.text).toContain(
        'event: error\ndata: {"error":"The answer was interrupted: retry"}',
      );
      expect(answer.text).not.toContain('event: done');
      // The provider did answer: its usage counts once.
      expect(await usageOf(platform, user)).toHaveLength(1);
      expect((await quotaOf(platform, user)).held).toBe(0);
      expectSecret();
    },
  );

  test('a stream that continues with garbage ends with an error event', async () => {
    const user = randomUUID();
    const behaviour: AiBehaviour = ({ provider, model }, response) => {
      const [first] = streamOf(provider, model, SAID);
      sendEvents(response, [...(first ? [first] : []), { data: `{"${SAID}` }]);
    };
    const answer = await chat(user, behaviour, { model: 'openai/gpt-6-luna', stream: true });
    expect(answer.text).toContain(
      'event: error\ndata: {"error":"The answer was interrupted: retry"}',
    );
    expect(await usageOf(platform, user)).toHaveLength(1);
    expectSecret();
  });

  test('disconnects from a provider that sends an endless event', async () => {
    const user = randomUUID();
    let left = false;
    const behaviour: AiBehaviour = async ({ provider, model }, response) => {
      sendEvents(response, streamOf(provider, model, SAID).slice(0, 1), false);
      response.write('data: ');
      await pour(response, Buffer.alloc(65_536, 'x'));
      left = true;
    };
    const answer = await chat(user, behaviour, { model: 'openai/gpt-6-luna', stream: true });
    expect(answer.text).toContain(
      'event: error\ndata: {"error":"The answer was interrupted: retry"}',
    );
    await expect.poll(() => left).toBe(true);
    expect((await quotaOf(platform, user)).held).toBe(0);
  });

  test.each([true, false])(
    'disconnects from a provider some time after its client and counts the usage once: streaming %s',
    async (stream) => {
      const user = randomUUID();
      let left = false;
      providers.behave('openai', async ({ provider, model }, response) => {
        if (stream) sendEvents(response, streamOf(provider, model, SAID).slice(0, 1), false);
        await once(response, 'close');
        left = true;
      });
      running = await startAi(platform, ['openai'], { left: { ms: 200 } });
      const leaving = new AbortController();
      const asked = providers.requests.length;
      const answering = send(running.url, 'POST', '/api/ai/chat', {
        headers: {
          authorization: `Bearer ${platform.internalKey}`,
          ...subscribed('solo'),
          'x-user-id': user,
        },
        body: { messages: [{ role: 'user', content: PROMPT }], stream },
        signal: leaving.signal,
      });
      if (stream) {
        const reader = (await answering).body?.getReader();
        await reader?.read();
        leaving.abort();
      } else {
        await expect.poll(() => providers.requests.length).toBeGreaterThan(asked);
        leaving.abort();
        await expect(answering).rejects.toThrow();
      }
      await expect.poll(() => left).toBe(true);
      await expect.poll(async () => (await quotaOf(platform, user)).held).toBe(0);
      expect(await usageOf(platform, user)).toHaveLength(1);
      expectSecret();
      const errors = platform.logged
        .map((line) => JSON.parse(line))
        .filter(({ level }) => level >= 50);
      expect(errors.filter(({ error }) => error?.type === 'AbortError')).toEqual([]);
    },
  );
});

test.each([
  { prompt_tokens: 3, completion_tokens: 2_000_000_000_000 },
  { prompt_tokens: 2 ** 31, completion_tokens: 2 ** 31 },
  { prompt_tokens: -5, completion_tokens: 1.5 },
  { total_tokens: 7 },
  'many',
])('invalid usage does not block other calls: %j', async (usage) => {
  const user = randomUUID();
  const answer = await chat(
    user,
    ({ provider, model }, response) =>
      raw(JSON.stringify({ ...(answerOf(provider, model, SAID) as object), usage }))(
        { provider, model, streams: false, path: '', headers: {}, body: {} },
        response,
      ),
    { model: 'openai/gpt-6-luna' },
  );
  expect([answer.status, answer.body.message.content]).toEqual([200, SAID]);
  const [row] = await usageOf(platform, user);
  expect(row?.inputTokens).toBeGreaterThan(0);
  expect(row?.outputTokens).toBeGreaterThan(0);
  // Usage of other users is still written.
  providers.behave();
  const other = randomUUID();
  await running?.chat(
    { ...subscribed('solo'), 'x-user-id': other },
    { model: 'openai/gpt-6-luna' },
  );
  expect(await usageOf(platform, other)).toHaveLength(1);
});
