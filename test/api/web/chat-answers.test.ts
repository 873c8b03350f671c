// @module-tag attack
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Listening } from '../../../api/http/server.js';
import { createWeb } from '../../../api/web/web.js';
import { Chats } from '../../../src/agents/chat/chats.js';
import { BadGatewayError } from '../../../src/lib/errors.js';
import { queryRows } from '../../platform/database/catalog.js';
import { insertSql, ROWS } from '../../platform/database/rows.js';
import { makeAccount, signIn } from '../../support/account.js';
import { databaseAlone } from '../../support/dependencies.js';
import { send } from '../../support/http.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

let database: TestDatabase;
let alone: Awaited<ReturnType<typeof databaseAlone>>;
let web: Listening;
let cookie: string;
let agentId: string;
let asked = 0;
let fault: Error | undefined;

const owner = <Row extends object>(sql: string) => queryRows<Row>(database.ownerUrl, sql);

async function* answer(): AsyncGenerator<string> {
  asked += 1;
  if (fault) throw fault;
  yield await Promise.resolve('good ');
  yield 'day';
}

beforeAll(async () => {
  database = await testDatabase();
  alone = await databaseAlone(database, undefined, { OPENAI_API_KEY: 'k' });
  // The part of the hosts that a chat uses.
  const directory = { accessTo: () => Promise.resolve({ ask: answer }) };
  const { router } = alone.dependencies.ai;
  const chats = new Chats(
    ...([directory, router] as unknown as ConstructorParameters<typeof Chats>),
  );
  web = await createWeb({ ...alone.dependencies, chats }).listen('127.0.0.1', 0);
});
afterAll(async () => {
  await web?.close();
  await alone?.close();
  await database?.close();
});
beforeEach(async () => {
  asked = 0;
  fault = undefined;
  const account = await makeAccount(database.db);
  cookie = await signIn(database.db, account);
  agentId = `agent-${randomUUID()}`;
  const rows = {
    subscriptions: { period_start: '2026-01-01', period_end: '2100-01-01' },
    agents: {
      id: agentId,
      host: agentId,
      status: 'active',
      port: 1,
      model: 'claude-opus-4-6',
    },
  };
  for (const [table, row] of Object.entries(rows)) {
    await owner(insertSql(table, { ...ROWS[table]?.(account.id, 1), ...row }));
  }
});

const ways = [
  ['/api/chat', {}],
  ['/api/agent', { action: 'chat' }],
] as const;

const forms = [
  ['at once', 'application/json'],
  ['as events', 'text/event-stream'],
] as const;

/** Sends a chat message to an endpoint, complete or streamed, and adds the text of the answer. */
async function ask(path: string, body: object, accept: string, message = 'hello') {
  const response = await send(web.url, 'POST', path, {
    body: { ...body, agentId, message },
    headers: { cookie, accept, 'idempotency-key': 'k', origin: web.url },
  });
  const text = await response.text();
  return { status: response.status, text, isReplayed: response.headers.get('idempotent-replayed') };
}

const kept = () =>
  owner('SELECT state, body, bytes FROM idempotency_keys ORDER BY created_at DESC');

for (const [path, body] of ways) {
  for (const [form, accept] of forms) {
    test(`a chat by ${path} ${form} is stored once, and found by a repetition`, async () => {
      const first = await ask(path, body, accept);
      expect([first.status, first.isReplayed]).toEqual([200, null]);
      expect(first.text).toContain('good day');
      await expect
        .poll(async () => (await kept())[0])
        .toEqual({ state: 'found', body: null, bytes: 0 });
      // The repetition finds the stored answer, although the agent does not run.
      await owner(`UPDATE agents SET status = 'stopped', port = NULL WHERE id = '${agentId}'`);
      const again = await ask(path, body, accept);
      expect([again.status, again.isReplayed]).toEqual([200, 'true']);
      if (form === 'at once') expect(again.text).toBe(first.text);
      else expect(again.text).toContain('event: done');
      expect((await ask(path, body, accept, 'another')).status).toBe(422);
      expect(asked).toBe(1);
    });

    test(`a chat by ${path} ${form} whose messages were removed is refused and not sent again`, async () => {
      await ask(path, body, accept);
      await expect.poll(async () => (await kept())[0]).toMatchObject({ state: 'found' });
      await owner(`DELETE FROM messages WHERE agent_id = '${agentId}'`);
      const again = await ask(path, body, accept);
      expect([again.status, again.text]).toEqual([409, expect.stringContaining('no longer kept')]);
      expect(asked).toBe(1);
    });
  }
}

test.each(ways)('a chat by %s streams according to its field stream', async (path, body) => {
  const streamed = await ask(path, { ...body, stream: true }, 'application/json', 'a');
  expect(streamed.text.match(/^event: .*$/gm)).toEqual([
    'event: delta',
    'event: delta',
    'event: done',
  ]);
  await owner('DELETE FROM idempotency_keys');
  const whole = await ask(path, { ...body, stream: false }, 'text/event-stream', 'b');
  expect(JSON.parse(whole.text).message.content).toBe('good day');
});

test('a chat whose gateway fails names the provider and the model of the agent', async () => {
  fault = new BadGatewayError("The agent's gateway reported an error: retry later");
  const { status, text } = await ask('/api/chat', {}, 'application/json');
  expect([status, JSON.parse(text).error]).toEqual([
    502,
    expect.stringMatching(/: retry later \(model gpt-\S+ at the AI provider openai\)$/),
  ]);
});

test('a chat with a model whose context is too small is immediately a 503 with that reason', async () => {
  const small = [{ name: 'small', contextWindow: 8_192 }];
  alone.dependencies.ai.models.learn('openai', small);
  const { status, text } = await ask('/api/chat', {}, 'application/json');
  expect(status).toBe(503);
  expect(text).toContain('The context of openai/small is too small for agents');
  expect(asked).toBe(0);
});
