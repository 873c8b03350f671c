// @module-tag attack
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { LeftCallBounds } from '../../../src/ai/routing/left-calls.js';
import {
  chunk,
  sendEvents,
  startAiProviders,
  usageChunk,
  type AiBehaviour,
  type AiProviders,
} from '../../support/ai-providers.js';
import { send } from '../../support/http.js';
import { testPlatform, type TestPlatform } from '../../support/platform.js';
import { completion, sendJson } from '../../support/provider-stub.js';
import { quotaOf, startAi, subscribed, usageOf, type AiBackend } from './support.js';

/** The largest single piece of a stream: 31,250 tokens at four bytes each. */
const PIECE = 'word'.repeat(31_250);
/** The usage that the provider reports at the end. */
const USED = { prompt_tokens: 40, completion_tokens: 30_000 };
const RECORDED = { inputTokens: 40, outputTokens: 30_000 };

let providers: AiProviders;
let platform: TestPlatform;
let running: AiBackend | undefined;
/** Unfinished answers of the provider. */
let open: ServerResponse[] = [];
let closed = 0;

beforeAll(async () => {
  providers = await startAiProviders();
  platform = await testPlatform({
    workers: false,
    dead: ['docker'],
    env: { ...providers.env('openai', 'openrouter'), AI_PROVIDER: 'openai' },
  });
});
afterEach(async () => {
  providers.behave();
  await running?.close();
  running = undefined;
  for (const response of open) response.destroy();
  open = [];
  closed = 0;
});
afterAll(async () => {
  await platform?.close();
  await providers?.close();
});

const keepOpen = (response: ServerResponse) => {
  open.push(response);
  response.once('close', () => closed++);
};

/** Sends one piece at once; the test ends the stream. */
const stream: AiBehaviour = ({ model }, response) => {
  keepOpen(response);
  sendEvents(response, [chunk(model, { role: 'assistant', content: PIECE })], false);
};

/** Sends nothing until the test ends the answer. */
const whole: AiBehaviour = (_request, response) => keepOpen(response);

function end(response: ServerResponse | undefined): void {
  if (!response) throw new Error('no request reached the provider');
  const last = { ...usageChunk('stub'), usage: USED };
  if (response.headersSent) {
    response.write(`data: ${JSON.stringify(chunk('stub', {}, 'stop').data)}\n\n`);
    response.end(`data: ${JSON.stringify(last)}\n\ndata: [DONE]\n\n`);
  } else sendJson(response, 200, { ...completion('yes'), usage: USED });
}

const start = async (behaviour: AiBehaviour, left: Partial<LeftCallBounds> = {}) => {
  providers.behave('openai', behaviour);
  providers.behave('openrouter', behaviour);
  running = await startAi(platform, ['openai', 'openrouter'], { left });
};

interface AskOptions {
  readonly requestId?: string;
  readonly signal?: AbortSignal;
}

function ask(user: string, body: object, { requestId = randomUUID(), signal }: AskOptions = {}) {
  if (!running) throw new Error('not started');
  return send(running.url, 'POST', '/api/ai/chat', {
    headers: {
      'x-request-id': requestId,
      authorization: `Bearer ${platform.internalKey}`,
      ...subscribed('solo'),
      'x-user-id': user,
    },
    body: {
      messages: [{ role: 'user', content: 'hello' }],
      model: 'openai/gpt-6-luna',
      max_tokens: 40_000,
      ...body,
    },
    ...(signal && { signal }),
  });
}

/** Starts a call for a user and disconnects once the provider is answering. */
async function askAndLeave(user: string, body: object): Promise<void> {
  const leaving = new AbortController();
  const before = open.length;
  const requestId = randomUUID();
  const asked = ask(user, body, { requestId, signal: leaving.signal });
  asked.catch(() => undefined); // aborted below
  await expect.poll(() => open.length).toBe(before + 1);
  if ('stream' in body) {
    const reader = (await asked).body?.getReader();
    await reader?.read();
  }
  leaving.abort();
  const noticed = () => platform.logged.some((line) => line.includes(requestId));
  await expect.poll(noticed).toBe(true);
}

const recorded = (user: string) => usageOf(platform, user);

describe.each([
  ['a stream', stream, { stream: true }],
  ['a whole answer', whole, {}],
])('%s whose client disconnects', (_what, behaviour, body) => {
  test('a call left by its client holds its quota until the provider reports the usage', async () => {
    const user = randomUUID();
    await start(behaviour);
    await askAndLeave(user, body);
    const { held, used } = await quotaOf(platform, user);
    expect(held).toBeGreaterThan(40_000);
    expect(used).toBe(0);
    end(open[0]);
    await expect.poll(() => recorded(user)).toMatchObject([RECORDED]);
    expect(await quotaOf(platform, user)).toEqual({ used: 30_040, held: 0 });
  });

  test('a call left by its client is ended after the time limit and costs the usage seen so far', async () => {
    const user = randomUUID();
    await start(behaviour, { ms: 300 });
    await askAndLeave(user, body);
    await expect.poll(() => closed).toBe(1);
    await expect.poll(() => recorded(user)).toHaveLength(1);
    const [row] = await recorded(user);
    expect(row?.outputTokens).toBeGreaterThanOrEqual('stream' in body ? 31_250 : 30);
    expect((await quotaOf(platform, user)).held).toBe(0);
  });

  test('calls left by their clients beyond the limits end at once and cost the usage seen so far', async () => {
    const [user, other, third] = [randomUUID(), randomUUID(), randomUUID()];
    await start(behaviour, { ofUser: 1, inAll: 2 });
    await askAndLeave(user, body);
    expect(closed).toBe(0);
    await askAndLeave(user, body);
    await expect.poll(() => closed).toBe(1);
    await expect.poll(() => recorded(user)).toHaveLength(1);
    await askAndLeave(other, body);
    await askAndLeave(third, body);
    await expect.poll(() => closed).toBe(2);
    await expect.poll(() => recorded(third)).toHaveLength(1);
    expect(await recorded(other)).toEqual([]);
    for (const { outputTokens } of [...(await recorded(user)), ...(await recorded(third))]) {
      expect(outputTokens).toBeGreaterThanOrEqual('stream' in body ? 31_250 : 1);
    }
    // A finished call makes room for the next one.
    end(open[0]);
    await expect.poll(() => recorded(user)).toHaveLength(2);
    expect((await recorded(user)).at(-1)).toMatchObject(RECORDED);
    await askAndLeave(user, body);
    end(open.at(-1));
    await expect.poll(() => recorded(user)).toHaveLength(3);
    expect((await recorded(user)).at(-1)).toMatchObject(RECORDED);
  });

  test('stopping the platform records the usage seen so far of a call left by its client', async () => {
    const user = randomUUID();
    await start(behaviour);
    await askAndLeave(user, body);
    await running?.close();
    expect(await recorded(user)).toHaveLength(1);
    expect((await quotaOf(platform, user)).held).toBe(0);
    running = undefined;
  });
});

test('ends an endless stream after its client has disconnected', async () => {
  const user = randomUUID();
  await start(stream, { bytes: 1_000_000 });
  await askAndLeave(user, { stream: true });
  const event = `data: ${JSON.stringify(chunk('stub', { content: PIECE }).data)}\n\n`;
  for (const response of open) {
    const gone = once(response, 'close');
    while (!response.destroyed) {
      if (!response.write(event)) await Promise.race([once(response, 'drain'), gone]);
    }
  }
  await expect.poll(() => recorded(user)).toHaveLength(1);
  const [row] = await recorded(user);
  expect(row?.outputTokens).toBeGreaterThanOrEqual((1_000_000 + PIECE.length) / 4);
});

test("counts a left stream's bytes, not its characters", async () => {
  const user = randomUUID();
  await start(stream, { bytes: 1_000_000 });
  await askAndLeave(user, { stream: true });
  // Each event has 40,000 characters of three bytes.
  const event = `data: ${JSON.stringify(chunk('stub', { content: '語'.repeat(40_000) }).data)}\n\n`;
  for (let sent = 0; sent < 12; sent++) open[0]?.write(event);
  await expect.poll(() => closed, { timeout: 20_000 }).toBe(1);
  await expect.poll(() => recorded(user)).toHaveLength(1);
});

test('a call that fails after its client has disconnected costs nothing and is not retried elsewhere', async () => {
  const user = randomUUID();
  await start(whole);
  await askAndLeave(user, {});
  providers.asked();
  for (const response of open) sendJson(response, 503, { error: { message: 'no' } });
  await expect.poll(async () => (await quotaOf(platform, user)).held).toBe(0);
  expect(await recorded(user)).toEqual([]);
  expect(providers.asked()).toEqual([]);
});

test('a stream that breaks off after its client has disconnected costs the usage seen so far', async () => {
  const user = randomUUID();
  await start(stream);
  await askAndLeave(user, { stream: true });
  open[0]?.destroy();
  await expect.poll(() => recorded(user)).toHaveLength(1);
  expect((await recorded(user))[0]?.outputTokens).toBeGreaterThanOrEqual(31_250);
});

test("a stream ended early after its client left does not reset the provider's failures", async () => {
  const user = randomUUID();
  const short = { max_tokens: 5 };
  const busy: AiBehaviour = (_request, response) =>
    sendJson(response, 503, { error: { message: 'no' } });
  await start(busy, { ms: 100 });
  const behave = (behaviour: AiBehaviour) => {
    providers.behave();
    providers.behave('openai', behaviour);
  };
  behave(busy);
  for (let n = 0; n < 2; n++) expect((await ask(user, short)).status).toBe(200);
  behave(stream);
  await askAndLeave(user, { ...short, stream: true });
  await expect.poll(() => recorded(user)).toHaveLength(3);
  behave(busy);
  expect((await ask(user, short)).status).toBe(200);
  providers.asked();
  expect((await ask(user, short)).status).toBe(200);
  expect(providers.asked()).toEqual(['openrouter/openai/gpt-6-luna']);
});
