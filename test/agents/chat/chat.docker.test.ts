import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { allEvents, send } from '../../support/http.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';
import { sendJson } from '../../support/provider-stub.js';

let platform: TestPlatform;
let ada: TestUser;
let agentId: string;

beforeAll(async () => {
  platform = await testPlatform();
  ada = await platform.signUp('network');
  agentId = await platform.runningAgent(ada, { model: 'gpt-4' });
});
afterEach(() => platform.provider.behave());
afterAll(() => platform?.close());

const ask = (body: unknown) => platform.web(ada, 'POST', '/api/chat', { body });
const askStreaming = (body: unknown, signal?: AbortSignal) =>
  send(platform.webUrl, 'POST', '/api/chat', {
    body,
    headers: { cookie: ada.cookie, accept: 'text/event-stream' },
    ...(signal && { signal }),
  });
const history = async (conversation: string, query = '') => {
  const path = `/api/chat?agentId=${agentId}&conversation=${conversation}${query}`;
  return (await platform.web(ada, 'GET', path)).body.messages;
};

describe('chat with an agent', () => {
  test('a message to an agent on another host is refused, because its port may belong to another agent here', async () => {
    const before = platform.provider.requests.length;
    await platform.asOwner(`UPDATE agents SET host = 'elsewhere' WHERE id = '${agentId}'`);
    try {
      const answer = await ask({ agentId, message: 'hello', conversation: 'elsewhere' });
      expect(answer.status).toBe(503);
      expect(await history('elsewhere')).toEqual([]);
      expect(platform.provider.requests).toHaveLength(before);
    } finally {
      await platform.asOwner(`UPDATE agents SET host = 'local' WHERE id = '${agentId}'`);
    }
  });

  test("a message is answered by the agent, which uses the provider's model", async () => {
    const answer = await ask({ agentId, message: 'hello', conversation: 'first' });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      agentId,
      conversation: 'first',
      message: {
        id: expect.any(String),
        role: 'assistant',
        content: 'said: hello',
        createdAt: expect.stringMatching(/Z$/),
      },
    });
    expect(platform.provider.requests.at(-1)?.body.model).toBe('gpt-4');
    const messages = await history('first');
    expect(messages).toMatchObject([
      { role: 'user', content: 'hello', status: 'complete', conversation: 'first' },
      { id: answer.body.message.id, role: 'assistant', content: 'said: hello', status: 'complete' },
    ]);
    const onBackend = await platform.backend(
      ada,
      'GET',
      `/api/agents/${agentId}/messages?conversation=first`,
    );
    expect(onBackend.body.messages).toEqual(messages);
  });

  test('a message without a conversation begins a new one', async () => {
    const [one, two] = [await ask({ agentId, message: 'a' }), await ask({ agentId, message: 'b' })];
    expect(one.body.conversation).not.toBe(two.body.conversation);
  });

  test('an answer is streamed in pieces that add up to the whole', async () => {
    const response = await askStreaming({ agentId, message: 'ünïcödé 🚀 '.repeat(5) });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toContain('text/event-stream');
    const events = await allEvents(response);
    const done = events.at(-1);
    expect(done?.event).toBe('done');
    const pieces = events.slice(0, -1);
    expect(pieces.length).toBeGreaterThan(1);
    expect(pieces.every(({ event }) => event === 'delta')).toBe(true);
    const whole = pieces.map(({ data }) => data.content).join('');
    expect(whole).toBe(`said: ${'ünïcödé 🚀 '.repeat(5)}`);
    expect(done?.data).toMatchObject({
      agentId,
      message: { role: 'assistant', content: whole },
    });
    expect(await history(done?.data.conversation)).toHaveLength(2);
  });

  test.each([
    [{}, 'agentId is required'],
    [{ agentId: 'x' }, 'message is required'],
    [{ agentId: 'x', message: '' }, 'message is required'],
    [
      { agentId: 'x', message: 'hi', conversation: 'x'.repeat(129) },
      /conversation must be at most/,
    ],
  ])('an incomplete or invalid message is a 400 (%#)', async (body, error) => {
    const refused = await ask(body);
    expect(refused.status).toBe(400);
    expect(refused.body.error).toMatch(error);
  });

  test('a message to an unknown agent or without a session is refused', async () => {
    expect((await ask({ agentId: 'x', message: 'hi' })).status).toBe(404);
    const nobody = await platform.web(undefined, 'POST', '/api/chat', {
      body: { agentId, message: 'hi' },
    });
    expect(nobody.status).toBe(401);
    expect(nobody.headers.get('ratelimit-limit')).toBe('60');
  });
});

describe('failed answer', () => {
  test('a failed answer is a 502, and both messages are stored', async () => {
    platform.provider.behave((_request, response) => sendJson(response, 500, {}));
    const failed = await ask({ agentId, message: 'hello', conversation: 'failing' });
    expect([failed.status, failed.body.error]).toEqual([
      502,
      "The agent's gateway answered with 500 (model gpt-4 at the AI provider openai)",
    ]);
    expect(await history('failing')).toMatchObject([
      { role: 'user', content: 'hello', status: 'complete' },
      { role: 'assistant', content: '', status: 'failed' },
    ]);
  });

  test('a failed answer is an error event once the stream has begun', async () => {
    platform.provider.behave((_request, response) => sendJson(response, 500, {}));
    const response = await askStreaming({ agentId, message: 'hello', conversation: 'broken' });
    expect(await allEvents(response)).toEqual([
      {
        id: undefined,
        event: 'error',
        data: {
          error: "The agent's gateway answered with 500 (model gpt-4 at the AI provider openai)",
        },
      },
    ]);
    expect(await history('broken')).toMatchObject([{ role: 'user' }, { status: 'failed' }]);
  });

  test('an answer is stored as failed if the client disconnects', async () => {
    platform.provider.behave(() => undefined);
    const leaving = new AbortController();
    const response = await askStreaming(
      { agentId, message: 'hello', conversation: 'left' },
      leaving.signal,
    );
    await expect.poll(() => history('left')).toHaveLength(1);
    leaving.abort();
    await expect(allEvents(response)).rejects.toThrow();
    await expect
      .poll(() => history('left'))
      .toMatchObject([{ role: 'user' }, { role: 'assistant', status: 'failed' }]);
  });

  test('a message is a 502 if the gateway no longer listens', async () => {
    const id = await platform.runningAgent(ada);
    // Without workers, the end of the container is not recorded.
    await platform.stopWorkers();
    onTestFinished(() => platform.startWorkers());
    await platform.containers.kill(id);
    const refused = await ask({ agentId: id, message: 'hello' });
    expect(refused.status).toBe(502);
  });

  test('a message to an agent that is not running is a 409', async () => {
    const id = await platform.runningAgent(ada);
    await platform.backend(ada, 'POST', `/api/agents/${id}/stop?wait=60`);
    const refused = await ask({ agentId: id, message: 'hello' });
    expect([refused.status, refused.body]).toMatchObject([
      409,
      { error: 'The agent is not running', code: 'AGENT_NOT_RUNNING', status: 'stopped' },
    ]);
    const path = `/api/chat?agentId=${id}`;
    expect((await platform.web(ada, 'GET', path)).body).toEqual({ messages: [] });
  });

  test('a message without a configured provider is a 503 that names the setting to add', async () => {
    const without = await testPlatform({
      env: { OPENAI_API_KEY: undefined, OPENAI_BASE_URL: undefined },
    });
    try {
      const user = await without.signUp('solo');
      const id = await without.runningAgent(user);
      const refused = await without.web(user, 'POST', '/api/chat', {
        body: { agentId: id, message: 'hello' },
      });
      expect(refused.status).toBe(503);
      expect(refused.body).toEqual({
        error: 'No AI model is available',
        setup: expect.stringContaining('OPENAI_API_KEY'),
      });
    } finally {
      await without.close();
    }
  });
});

test('history is returned in pages, oldest first', async () => {
  for (const message of ['1', '2', '3']) await ask({ agentId, message, conversation: 'long' });
  const all = await history('long');
  expect(all.map(({ content }: { content: string }) => content)).toEqual([
    '1',
    'said: 1',
    '2',
    'said: 2',
    '3',
    'said: 3',
  ]);
  expect(await history('long', '&limit=2')).toEqual(all.slice(4));
  expect(await history('long', `&limit=3&before=${all[4].id}`)).toEqual(all.slice(1, 4));
});
