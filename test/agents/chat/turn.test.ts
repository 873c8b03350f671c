import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { keepMessage, listMessages } from '../../../src/agents/chat/messages.js';
import { chatTurn, requireRunning, type TurnEvent } from '../../../src/agents/chat/turn.js';
import { Database } from '../../../src/platform/database/database.js';
import { ConflictError } from '../../../src/lib/errors.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.js';

const attack = { tags: 'attack' };
const AGENT = { id: 'agent-1', userId: 'operator' };
const QUESTION = { message: 'hello', conversation: 'here', requestId: 'request-1' };

let database: TestDatabase;
let proxy: TcpProxy;
let far: Database;
let asked: number;

beforeAll(async () => {
  database = await testDatabase();
  await database.db.asPlatform().query(
    `INSERT INTO agents (id, user_id, name, subdomain, host, plan, model, ai_provider, started_at,
                         created_at, updated_at)
     VALUES ('${AGENT.id}', '${AGENT.userId}', 'a', 'a', 'here', 'network', 'gpt-4', 'openai', now(),
             now(), now())`,
  );
  const url = new URL(database.url);
  proxy = await startTcpProxy(`tcp://${url.host}`);
  url.host = new URL(proxy.host).host;
  far = new Database(url.href, { maxConnections: 3 });
});
afterAll(async () => {
  await far?.close();
  await proxy?.close();
  await database?.close();
});
beforeEach(async () => {
  asked = 0;
  await database.db.asPlatform().query('DELETE FROM messages');
});
afterEach(() => proxy.mend());

const tenant = () => far.asUser(AGENT.userId);

/** Yields two words and does something before its end. */
async function* answering(last: () => unknown = () => undefined): AsyncGenerator<string> {
  asked++;
  yield 'good ';
  yield 'day';
  await last();
}

const turn = (last?: () => unknown, waitMs?: number) =>
  chatTurn(tenant(), AGENT, QUESTION, answering(last), {
    retryMs: 20,
    ...(waitMs !== undefined && { waitMs }),
  });

async function said(events: AsyncIterable<TurnEvent>): Promise<string> {
  let text = '';
  for await (const event of events) {
    if (event.kind === 'delta') text += event.content;
    else expect(event.message).toMatchObject({ conversation: 'here', content: 'good day' });
  }
  return text;
}

const kept = async () =>
  (await listMessages(database.db.asUser(AGENT.userId), AGENT.id, { limit: 9 })).map(
    ({ content, status }) => `${status}: ${content}`,
  );

const BOTH = ['complete: hello', 'complete: good day'];

test('an answer is stored with the time that it took', async () => {
  const began = performance.now();
  await said(turn());
  const took = performance.now() - began;
  const tenantOfOwner = database.db.asUser(AGENT.userId);
  const [question, answer] = await listMessages(tenantOfOwner, AGENT.id, { limit: 9 });
  expect(question?.tookMs).toBe(null);
  expect(answer?.tookMs).toBeGreaterThanOrEqual(0);
  expect(answer?.tookMs).toBeLessThanOrEqual(took + 1);
});

test('an answer given during a short database outage is returned, and stored once afterwards', async () => {
  const away = () => {
    proxy.cut();
    setTimeout(() => proxy.mend(), 200);
  };
  expect(await said(turn(away))).toBe('good day');
  expect(await kept()).toEqual(BOTH);
});

test('an answer is returned even if the database stays unavailable, and stored later', async () => {
  expect(await said(turn(() => proxy.cut(), 100))).toBe('good day');
  proxy.mend();
  await expect.poll(kept).toEqual(BOTH);
});

test('an answer with characters that no database stores is returned, and stored without them', async () => {
  async function* odd(): AsyncGenerator<string> {
    yield await Promise.resolve('a\0b\ud800');
  }
  let text = '';
  for await (const event of chatTurn(tenant(), AGENT, QUESTION, odd())) {
    if (event.kind === 'delta') text += event.content;
  }
  expect(text).toBe('a\0b\ud800');
  expect(await kept()).toEqual(['complete: hello', 'complete: a\ufffdb\ufffd']);
});

test('a repeated request gets the stored answer and is not sent again', async () => {
  await said(turn());
  expect(await said(turn())).toBe('good day');
  expect([asked, await kept()]).toEqual([1, BOTH]);
});

test('a repeated request is refused while the first is being answered', async () => {
  const first = turn(() => proxy.cut(), 0);
  await first.next();
  await expect(said(turn())).rejects.toThrow(ConflictError);
  expect(await said(first)).toBe('day');
  proxy.mend();
  await expect.poll(kept).toEqual(BOTH);
  expect(asked).toBe(1);
});

test('a repeated request is sent again if its answer failed, and replaces it', async () => {
  const failing = turn(() => Promise.reject(new Error('broke off')));
  await expect(said(failing)).rejects.toThrow('broke off');
  expect(await kept()).toEqual(['complete: hello', 'failed: good day']);
  expect(await said(turn())).toBe('good day');
  expect([asked, await kept()]).toEqual([2, BOTH]);
});

test('another request with the same text is sent again', async () => {
  await said(turn());
  await said(chatTurn(tenant(), AGENT, { ...QUESTION, requestId: 'request-2' }, answering()));
  expect([asked, await kept()]).toEqual([2, [...BOTH, ...BOTH]]);
});

test(
  "the newest 64 MiB of an agent's messages are kept, whether they are large or numerous",
  attack,
  async () => {
    const db = database.db.asPlatform();
    const say = (count: number, bytes: number) =>
      db.query(
        `INSERT INTO messages (id, agent_id, user_id, conversation, role, content, created_at)
       SELECT $bytes || '-' || n, '${AGENT.id}', '${AGENT.userId}', 'c' || n % 9, 'assistant',
              repeat('x', $bytes::integer), now()
         FROM generate_series(1, $count::integer) n`,
        { bytes: String(bytes), count },
      );
    await say(70, 1024 * 1024);
    await say(10_000, 1);
    const content = 'x'.repeat(4 * 1024 * 1024);
    const side = { agentId: AGENT.id, userId: AGENT.userId, conversation: 'here' };
    const last = { ...side, id: 'new', role: 'assistant', content, status: 'complete' } as const;
    await keepMessage(tenant(), last, content.length);
    const ids = await db.query<{ id: string }>('SELECT id FROM messages ORDER BY position');
    // A small message counts as half a kilobyte.
    expect([ids.length, ids[0]?.id, ids.at(-1)?.id]).toEqual([10_056, '1048576-16', 'new']);
  },
);

test.each([
  ['pending', 'provisioning'],
  ['stopped', 'stopped'],
  ['error', 'error'],
  ['active', 'running'],
] as const)('a chat with an agent that is %s in the table is refused as %s', (status, shown) => {
  expect(() => requireRunning({ status, port: null })).toThrow(
    expect.objectContaining({ status: 409, facts: { status: shown } }),
  );
});
