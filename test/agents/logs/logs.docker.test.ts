import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventsOf, send, type ReceivedEvent } from '../../support/http.js';
import { until } from '../../support/until.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';

let platform: TestPlatform;
let ada: TestUser;
let agentId: string;

beforeAll(async () => {
  platform = await testPlatform();
  ada = await platform.signUp('network');
});
afterAll(() => platform?.close());

const print = (lines: number, text: string, stream = 'stdout') =>
  platform.orderAgent(agentId, { print: { lines, text, stream } });
const history = (query = '') =>
  platform.backend(ada, 'GET', `/api/logs/${agentId}/history${query}`);
const active = async () =>
  (await platform.backend(ada, 'GET', `/api/logs/${agentId}/active`)).body.streams;
const stream = (query = '', headers = {}) =>
  send(platform.backendUrl, 'GET', `/api/logs/${agentId}/stream${query}`, {
    headers: {
      authorization: `Bearer ${platform.internalKey}`,
      'x-user-id': ada.id,
      ...headers,
    },
  });

/** Reads events until one matches, then disconnects. */
async function readUntil(
  response: Response,
  last: (event: ReceivedEvent) => boolean,
): Promise<ReceivedEvent[]> {
  const events: ReceivedEvent[] = [];
  for await (const event of eventsOf(response)) {
    events.push(event);
    if (last(event)) break;
  }
  return events;
}

const linesOf = (events: readonly ReceivedEvent[]) => events.map(({ data }) => data.line);

describe("an agent's log", () => {
  beforeAll(async () => {
    agentId = await platform.runningAgent(ada);
    await print(5, 'before');
    await until(async () => (await history()).body.lines.length >= 6);
  });

  test('reads the log back in pages, oldest line first', async () => {
    const last = await history('?limit=2');
    expect(last.status).toBe(200);
    expect(last.body).toEqual({
      lines: [4, 5].map((n) => ({
        timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT.+Z$/),
        stream: 'stdout',
        line: `before ${n}`,
      })),
      cursor: expect.any(String),
    });
    await print(3, 'after', 'stderr');
    const next = `?limit=2&cursor=${encodeURIComponent(last.body.cursor)}`;
    const page = await until(async () => {
      const answer = await history(next);
      return answer.body.lines.length === 2 && answer;
    });
    expect(page.body.lines).toMatchObject([
      { stream: 'stderr', line: 'after 1' },
      { stream: 'stderr', line: 'after 2' },
    ]);
  });

  test.each(['?limit=0', '?limit=1001', '?cursor=nonsense'])(
    'rejects the log query %s',
    async (query) => {
      expect((await history(query)).status).toBe(400);
    },
  );

  test('follows the log live and resumes without a gap or a repeat', async () => {
    const response = await stream();
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toContain('text/event-stream');
    await until(async () => (await active()).length === 1);
    await print(3, 'live');
    const seen = await readUntil(response, ({ data }) => data.line === 'live 2');
    expect(linesOf(seen)).toEqual(['live 1', 'live 2']);
    expect(seen[0]).toMatchObject({
      event: 'log',
      id: expect.any(String),
      data: { timestamp: expect.any(String), stream: 'stdout', line: 'live 1' },
    });

    await print(2, 'later');
    const id = seen.at(-1)?.id ?? '';
    const isLast = ({ data }: ReceivedEvent) => data.line === 'later 2';
    const missed = ['live 3', 'later 1', 'later 2'];
    const byHeader = await readUntil(await stream('', { 'last-event-id': id }), isLast);
    expect(linesOf(byHeader)).toEqual(missed);
    const byQuery = await stream(`?cursor=${encodeURIComponent(id)}`);
    expect(linesOf(await readUntil(byQuery, isLast))).toEqual(missed);
    expect((await stream('?cursor=nonsense')).status).toBe(400);
    await until(async () => (await active()).length === 0);
  });

  test('ends a log stream by its id', async () => {
    const response = await stream();
    const [open] = await until(async () => {
      const streams = await active();
      return streams.length === 1 && streams;
    });
    expect(open).toEqual({
      streamId: response.headers.get('x-stream-id'),
      agentId,
      startedAt: expect.stringMatching(/Z$/),
    });
    const stop = () =>
      platform.backend(ada, 'POST', `/api/logs/${agentId}/stop`, {
        body: { streamId: open.streamId },
      });
    const stopped = await stop();
    expect([stopped.status, stopped.body]).toEqual([
      200,
      { success: true, streamId: open.streamId },
    ]);
    const events = await readUntil(response, ({ event }) => event === 'end');
    expect(events.at(-1)?.data).toEqual({ reason: 'stopped' });
    expect(await active()).toEqual([]);
    expect((await stop()).status).toBe(404);
  });

  test("redacts the agent's token in its log", async () => {
    const { body } = await platform.backend(ada, 'GET', `/api/agents/${agentId}/token`);
    expect(body).toEqual({
      id: agentId,
      token: expect.stringMatching(/^[\w-]{43}$/),
      websocketUrl: expect.stringMatching(/^ws:/),
    });
    const response = await stream();
    await until(async () => (await active()).length === 1);
    await print(1, `token=${body.token}!`);
    const live = await readUntil(response, () => true);
    expect(linesOf(live)).toEqual(['token=[redacted]! 1']);
    const read = await history('?limit=5');
    expect(read.text).toContain('token=[redacted]! 1');
    expect(read.text).not.toContain(body.token);
  });

  test('ends a log stream when its container ends', async () => {
    const response = await stream();
    await until(async () => (await active()).length === 1);
    await platform.backend(ada, 'POST', `/api/agents/${agentId}/stop?wait=60`);
    const events = await readUntil(response, ({ event }) => event === 'end');
    expect(events.at(-1)?.data).toEqual({ reason: 'container-ended' });
  });
});

test('returns an empty log for an agent without a container', async () => {
  const made = await platform.backend(ada, 'POST', '/api/agents', { body: { name: 'gone' } });
  agentId = made.body.id;
  await platform.becomes(agentId, 'active');
  await platform.temporal.client.workflow.getHandle(`supervise-agent-${agentId}`).terminate('test');
  await platform.containers.remove(agentId);
  expect((await history()).body).toEqual({ lines: [], cursor: null });
  const events = await readUntil(await stream(), ({ event }) => event === 'end');
  expect(events.map(({ data }) => data)).toEqual([{ reason: 'container-missing' }]);
});
