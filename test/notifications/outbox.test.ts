import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { OperationStore } from '../../src/agents/operations/operation-store.js';
import { SupersededError, WatchdogStore } from '../../src/agents/watchdog/watchdog-store.js';
import type { WatchdogMemory, WatchdogTransition } from '../../src/types/watchdog.js';
import type { Notification } from '../../src/types/notification.js';
import type { Delivery } from '../../src/notifications/notifier.js';
import { sendDue } from '../../src/notifications/outbox.js';
import { keptLog } from '../support/platform-environment.js';
import { newUser, testDatabase, type TestDatabase } from '../support/postgres.js';
import { testSecrets } from '../support/secrets.js';

const USER = 'operator';
const MEMORY: WatchdogMemory = {
  version: 1,
  state: 'degraded',
  since: 0,
  crashes: [1, 2, 3],
  repairAttempts: 0,
  lastRepair: null,
};

let database: TestDatabase;
let store: WatchdogStore;
const { log, lines } = keptLog();

beforeAll(async () => {
  database = await testDatabase();
  store = new WatchdogStore(database.db);
});
beforeEach(() => sql('DELETE FROM pending_notifications'));
afterAll(() => database?.close());

const sql = (statement: string) => database.db.asPlatform().query(statement);
const waiting = async () => (await sql('SELECT FROM pending_notifications')).length;

async function newAgent(userId = USER) {
  const id = randomUUID();
  const names = { id, userId, name: id, subdomain: id };
  const kind = { plan: 'network', model: 'gpt-4', aiProvider: 'openai' } as const;
  await database.db.asUser(userId).transaction((db) => db.Agent.create({ ...names, ...kind }));
  return { agentId: id, userId, host: 'local' };
}

let version = 0;
const change = (
  state: WatchdogTransition['memory']['state'],
  cause: WatchdogTransition['cause'] = 'exit',
): WatchdogTransition => ({
  id: randomUUID(),
  from: 'running',
  cause,
  reason: null,
  memory: { ...MEMORY, version: ++version, state },
});

/** Creates channels that return the scripted answers. */
function channels(...answers: readonly (readonly Delivery[] | Error)[]) {
  const reported: Notification[] = [];
  const notify = (notification: Notification): Promise<Delivery[]> => {
    const answer = answers[reported.length] ?? [{ channel: 'discord', outcome: 'sent' }];
    reported.push(notification);
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve([...answer]);
  };
  return { reported, parts: { database: database.db, notifier: { notify }, log } };
}

describe('notifications of recorded transitions', () => {
  test('notifies once when an agent is degraded or in a crash loop, however often it is recorded', async () => {
    const agent = await newAgent();
    const changes = [
      change('degraded'),
      change('repairing'),
      change('crash_loop'),
      change('crash_loop', 'repair_failed'),
      change('running'),
    ];
    for (const made of [...changes, ...changes]) await store.recordTransition(agent, made);
    const { reported, parts } = channels();
    while ((await sendDue(parts)) > 0);
    const { agentId, userId } = agent;
    const common = { agent: { agentId, userId } };
    expect(reported).toHaveLength(3);
    expect(reported).toEqual(
      expect.arrayContaining([
        { ...common, id: changes[0]?.id, event: 'degraded' },
        { ...common, id: changes[2]?.id, event: 'crash_loop', crashes: 3 },
        { ...common, id: changes[3]?.id, event: 'crash_loop', crashes: 0 },
      ]),
    );
  });

  test('notifies once of each repair attempt', async () => {
    const agent = await newAgent();
    const made = change('repairing');
    await store.recordTransition(agent, made);
    const memory = { ...made.memory, repairAttempts: 2, lastRepair: 1 };
    for (const id of [randomUUID(), randomUUID()]) {
      await store.recordRepairAttempt(agent, { id, memory, maxAttempts: 3 });
    }
    const { reported, parts } = channels();
    await sendDue(parts);
    expect(reported).toMatchObject([{ event: 'repair_attempt', attempt: 2, maxAttempts: 3 }]);
  });
});

test('refuses a transition based on outdated memory and sends no notification', async () => {
  const agent = await newAgent();
  const late = change('crash_loop');
  const newest = change('running', 'healthy');
  await store.recordTransition(agent, newest);
  await expect(store.recordTransition(agent, late)).rejects.toBeInstanceOf(SupersededError);
  const attempt = { ...late.memory, repairAttempts: 1, lastRepair: 1 };
  await store.recordRepairAttempt(agent, { id: randomUUID(), memory: attempt, maxAttempts: 3 });
  expect(await waiting()).toBe(0);
  const [row] = await sql(`SELECT watchdog FROM agents WHERE id = '${agent.agentId}'`);
  expect(row).toEqual({ watchdog: newest.memory });
});

describe('pending notifications', () => {
  test(
    "sends in turn by owner, so that one owner's flood delays no other",
    { tags: 'attack' },
    async () => {
      const flooding = await newAgent(await newUser(database));
      for (let count = 0; count < 25; count++) {
        await store.recordTransition(flooding, change('degraded'));
      }
      const other = await newAgent();
      await store.recordTransition(other, change('degraded'));
      const { reported, parts } = channels();
      expect(await sendDue(parts)).toBe(10);
      expect(reported.map(({ agent: { userId } }) => userId)).toContain(USER);
    },
  );

  const oneWaits = async () => store.recordTransition(await newAgent(), change('degraded'));

  test('sends each pending notification once across processes', async () => {
    for (let count = 0; count < 12; count++) await oneWaits();
    const processes = [channels(), channels(), channels()];
    await Promise.all(processes.map(({ parts }) => sendDue(parts)));
    await Promise.all(processes.map(({ parts }) => sendDue(parts)));
    const ids = processes.flatMap(({ reported }) => reported.map(({ id }) => id));
    expect([ids.length, new Set(ids).size]).toEqual([12, 12]);
    expect(await waiting()).toBe(0);
  });

  test("retries a notification when the channel's wait is over, and not before", async () => {
    await oneWaits();
    const later = { outcome: 'waiting', delayMs: 60_000, reason: 'busy' } as const;
    const { reported, parts } = channels([
      { channel: 'telegram', outcome: 'sent' },
      { channel: 'discord', ...later },
    ]);
    expect([await sendDue(parts), await sendDue(parts)]).toEqual([1, 0]);
    await sql(`UPDATE pending_notifications SET due_at = due_at - interval '60 seconds'`);
    expect(await sendDue(parts)).toBe(1);
    expect(reported).toHaveLength(2);
    expect(await waiting()).toBe(0);
  });

  test('retries a notification whose process died', async () => {
    await oneWaits();
    const { reported, parts } = channels(new Error('killed'));
    expect([await sendDue(parts), await sendDue(parts)]).toEqual([1, 0]);
    await sql(`UPDATE pending_notifications SET due_at = now()`);
    expect(await sendDue(parts)).toBe(1);
    expect(reported[0]).toEqual(reported[1]);
  });

  test('logs a notification that a channel drops', async () => {
    await oneWaits();
    const reason = 'discord refused the message with status 401';
    const { parts } = channels([{ channel: 'discord', outcome: 'dropped', reason }]);
    await sendDue(parts);
    expect(lines.at(-1)).toContain('notification dropped');
    expect(lines.at(-1)).toContain(reason);
    expect(await waiting()).toBe(0);
  });
});

test('notifies operators of a missing memory, whether a check or an operation finds it', async () => {
  const agent = await newAgent();
  await store.recordTransition(agent, change('crash_loop', 'memory_missing'));
  const transition = change('crash_loop', 'memory_missing');
  const failed = { kind: 'start', status: 'failed', error: 'its memory is missing' } as const;
  const [id, kind] = [randomUUID(), 'start'] as const;
  const { agentId } = agent;
  await database.db
    .asUser(USER)
    .transaction((db) => db.Operation.create({ id, agentId, userId: USER, kind }));
  await new OperationStore(database.db, testSecrets()).finish(agent, { id, ...failed, transition });
  const { reported, parts } = channels();
  await sendDue(parts);
  expect(reported.map(({ event }) => event)).toEqual(['memory_missing', 'memory_missing']);
});

test('notifies operators of a refused stop, and shows the owner an error until it succeeds', async () => {
  const agent = await newAgent();
  const { agentId } = agent;
  const found = async () => {
    const [agent] = await sql(`SELECT status, status_reason FROM agents WHERE id = '${agentId}'`);
    return agent;
  };
  await sql(`UPDATE agents SET desired = 'stopped' WHERE id = '${agentId}'`);
  const reason = 'The container engine has refused this step';
  await store.recordTransition(agent, { ...change('running', 'stop_refused'), reason });
  const { reported, parts } = channels();
  await sendDue(parts);
  expect(reported.map(({ event }) => event)).toEqual(['stop_refused']);
  expect(await found()).toMatchObject({ status: 'error', status_reason: reason });
  await store.recordTransition(agent, change('stopped', 'stopped'));
  expect(await found()).toEqual({ status: 'stopped', status_reason: null });
});
