// @module-tag attack
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { MockActivityEnvironment } from '@temporalio/testing';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { askInTurn, endLostTurn, type OwnerTurn } from '../../../activities/owner-turns.js';
import {
  OwnerTurns,
  type OwnerQuestion,
  type TurnEnd,
} from '../../../src/agents/chat/owner-turns.js';
import { listMessages } from '../../../src/agents/chat/messages.js';
import { createAgentSecrets } from '../../../src/agents/credentials/agent-secrets.js';
import { hostLimiters } from '../../../src/agents/watchdog/host-limiters.js';
import { ringOf } from '../../../src/platform/secrets/key-ring.js';
import { SecretBox } from '../../../src/platform/secrets/secret-box.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

const AGENT = { agentId: 'agent-1', userId: 'operator', host: 'here' };
const QUESTION = { id: 'turn-1', conversation: 'task-1', text: 'Is the shop open?' };
const LOST = {
  kind: 'failed',
  reason: 'The answer was lost when the platform restarted. The message is not sent again',
};

let database: TestDatabase;
let turns: OwnerTurns;
let gateway: Server;
/** Bodies of the requests that reached the agent. */
let asked: unknown[];
let answering: (response: ServerResponse) => void;

beforeAll(async () => {
  database = await testDatabase();
  const secrets = new SecretBox(ringOf(Buffer.alloc(32)));
  turns = new OwnerTurns(database.db, secrets);
  gateway = createServer((request, response) => {
    void json(request).then((body) => {
      asked.push(body);
      answering(response);
    });
  });
  await once(gateway.listen(0, '127.0.0.1'), 'listening');
  const { port } = gateway.address() as AddressInfo; // TCP: always an object
  await database.db.asPlatform().query(
    `INSERT INTO agents (id, user_id, name, subdomain, host, plan, model, ai_provider, desired,
                         status, port, started_at, created_at, updated_at)
     VALUES ($agentId, $userId, 'a', 'a', $host, 'solo', 'gpt-4', 'openai', 'running', 'active',
             $port, now(), now(), now())`,
    { ...AGENT, port },
  );
  const agent = { id: AGENT.agentId, userId: AGENT.userId };
  await tenant().transaction((db) => createAgentSecrets(db, secrets, agent));
});
afterAll(async () => {
  gateway?.close();
  await database?.close();
});
beforeEach(async () => {
  asked = [];
  answering = saying('Yes, it is');
  await database.db.asPlatform().query('DELETE FROM messages');
});

const tenant = () => database.db.asUser(AGENT.userId);

const saying = (text: string) => (response: ServerResponse) => {
  const piece = JSON.stringify({ choices: [{ delta: { content: text } }] });
  response.setHeader('content-type', 'text/event-stream').end(`data: ${piece}\n\ndata: [DONE]\n\n`);
};

const ask = (more: Partial<OwnerQuestion> = {}, agent = AGENT) =>
  turns.ask(agent, { ...QUESTION, ...more }, new AbortController().signal);

const kept = async () =>
  (await listMessages(tenant(), AGENT.agentId, { limit: 500 })).map(
    ({ content, conversation, status }) => [conversation, status, content],
  );

test('stores both sides of a turn, and returns the stored answer without a second question', async () => {
  const answered = { kind: 'answered', answer: 'Yes, it is' };
  expect(await ask()).toEqual(answered);
  // The owner may change the text of a task between two attempts.
  expect(await ask({ text: 'Is the bar open?' })).toEqual(answered);
  expect(asked).toHaveLength(1);
  expect(await kept()).toEqual([
    ['task-1', 'complete', QUESTION.text],
    ['task-1', 'complete', 'Yes, it is'],
  ]);
});

test('ends a turn as failed when its answer breaks off, and never sends the question again', async () => {
  answering = (response) => response.destroy();
  expect(await ask()).toMatchObject({ kind: 'failed', reason: expect.stringContaining('gateway') });
  expect(await ask()).toEqual(LOST);
  expect(await ask({ text: 'another text' })).toEqual(LOST);
  expect(asked).toHaveLength(1);
});

test('ends a turn as failed when the agent takes too long', async () => {
  answering = () => undefined;
  expect(await ask({ timeoutMs: 200 })).toMatchObject({ kind: 'failed' });
  expect(await ask()).toEqual(LOST);
});

test('never sends the question again after the sending process was killed', async () => {
  // The second attempt begins while the first one still waits for its answer.
  answering = () => undefined;
  const killed = new AbortController();
  const first = turns.ask(AGENT, QUESTION, killed.signal);
  await expect.poll(() => asked.length).toBe(1);
  expect(await ask()).toEqual(LOST);
  expect(await turns.endOf(AGENT, QUESTION)).toEqual(LOST);
  killed.abort();
  await expect(first).rejects.toThrow();
  expect(asked).toHaveLength(1);
});

test('sends no question to an agent that does not run on this host', async () => {
  const none = { kind: 'skipped', reason: 'The agent is not running' };
  expect(await ask({}, { ...AGENT, host: 'elsewhere' })).toEqual(none);
  expect(await ask({}, { ...AGENT, agentId: 'another' })).toEqual(none);
  expect([asked, await kept()]).toEqual([[], []]);
});

test('keeps 200 messages of a conversation', async () => {
  await database.db.asPlatform().query(
    `INSERT INTO messages (id, agent_id, user_id, conversation, role, content, status, created_at)
     SELECT 'm' || n, $agentId, $userId, 'task-1', 'user', n::text, 'complete', now()
       FROM generate_series(1, 205) n`,
    { agentId: AGENT.agentId, userId: AGENT.userId },
  );
  await ask();
  const rows = await kept();
  expect([rows.length, rows[0]?.[2], rows.at(-1)?.[2]]).toEqual([200, '8', 'Yes, it is']);
});

/** An area with one open turn. */
class Area {
  isOpen = true;
  readonly ends: TurnEnd[] = [];
  readonly question = () => Promise.resolve(this.isOpen ? QUESTION : undefined);
  readonly finish = (_: OwnerTurn, end: TurnEnd) => Promise.resolve(void this.ends.push(end));
}

const run = (area: Area, limiters = hostLimiters(1)) => {
  const environment = new MockActivityEnvironment();
  const turn = { id: QUESTION.id, agent: AGENT };
  return { environment, end: environment.run(askInTurn({ turns, limiters }, area), turn) };
};

test('hands the answer to the area, and only the kind of the end to the workflow', async () => {
  const area = new Area();
  expect(await run(area).end).toBe('answered');
  area.isOpen = false;
  expect(await run(area).end).toBe('skipped');
  expect(area.ends).toEqual([{ kind: 'answered', answer: 'Yes, it is' }]);
});

test('a turn waits for a free place of its owner, who has half of the places', async () => {
  const limiters = hostLimiters(1);
  const held = await Promise.all(
    Array.from({ length: 10 }, () => limiters.turns.acquire({ owner: AGENT.userId })),
  );
  const area = new Area();
  const { end } = run(area, limiters);
  await expect.poll(() => limiters.turns.state.waiting).toBe(1);
  held[0]?.();
  expect(await end).toBe('answered');
  expect(limiters.turns.state.running).toBe(9);
});

test('ends a turn without a host as skipped, and with a lost answer as failed', async () => {
  const area = new Area();
  const environment = new MockActivityEnvironment();
  const lose = () => environment.run(endLostTurn(turns, area), { id: 'turn-1', agent: AGENT });
  expect(await lose()).toBe('skipped');
  answering = (response) => response.destroy();
  await ask();
  expect(await lose()).toBe('failed');
  expect(area.ends).toEqual([
    { kind: 'skipped', reason: "The agent's host could not be reached in time" },
    LOST,
  ]);
});
