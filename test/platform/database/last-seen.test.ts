import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LastSeen } from '../../../src/agents/agents/last-seen.js';
import type { TenantDatabase } from '../../../src/platform/database/database.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { queryRows } from './catalog.js';
import { insertSql, ROWS } from './rows.js';

const EARLIER = '2026-01-01T00:00:00.000Z';
const LATER = '2026-01-01T00:02:00.000Z';

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
  for (const user of ['alice', 'bob']) {
    await queryRows(database.ownerUrl, insertSql('users', ROWS.users?.(user, 1) ?? {}));
  }
});
afterAll(() => database.close());

async function agentOf(userId: string, deletedAt: Date | null = null): Promise<string> {
  const id = randomUUID();
  const desired = deletedAt ? 'deleted' : 'running';
  const kind = { plan: 'solo', model: 'provider/model', aiProvider: 'provider' } as const;
  const { db } = database;
  await db
    .asUser(userId)
    .transaction((db) =>
      db.Agent.create({ id, userId, name: id, subdomain: id, desired, deletedAt, ...kind }),
    );
  return id;
}

async function seenAt(id: string): Promise<string | undefined> {
  const { db } = database;
  const row = await db.asPlatform().transaction((db) => db.Agent.findByPk(id));
  return row?.observedAt?.toISOString();
}

test('records the time of each agent, whoever owns it', async () => {
  const [first, second] = [await agentOf('alice'), await agentOf('bob')];
  const lastSeen = new LastSeen(database.db);
  lastSeen.record(first, EARLIER);
  lastSeen.record(second, LATER);
  await lastSeen.settled();
  expect([await seenAt(first), await seenAt(second)]).toEqual([EARLIER, LATER]);
});

test('records an agent again when it is observed again', async () => {
  const id = await agentOf('alice');
  const lastSeen = new LastSeen(database.db);
  lastSeen.record(id, EARLIER);
  await lastSeen.settled();
  lastSeen.record(id, LATER);
  await lastSeen.settled();
  expect(await seenAt(id)).toBe(LATER);
});

test('skips removed agents and locked rows without waiting', async () => {
  const [removed, locked, other] = [
    await agentOf('alice', new Date()),
    await agentOf('alice'),
    await agentOf('bob'),
  ];
  await database.db.asUser('alice').transaction(async (db) => {
    await db.Agent.findByPk(locked, { lock: true });
    const lastSeen = new LastSeen(database.db);
    for (const id of [removed, locked, other]) lastSeen.record(id, LATER);
    await lastSeen.settled();
  });
  expect(await Promise.all([removed, locked, other].map(seenAt))).toEqual([
    undefined,
    undefined,
    LATER,
  ]);
});

test('drops a time that cannot be written and writes the next one', async () => {
  const id = await agentOf('alice');
  const { db } = database;
  let isAway = true;
  let asked = 0;
  const platform: TenantDatabase = {
    ...db.asPlatform(),
    query: (...statement) => {
      asked++;
      return isAway
        ? Promise.reject(new Error('no connection'))
        : db.asPlatform().query(...statement);
    },
  };
  const lastSeen = new LastSeen({ asPlatform: () => platform });
  lastSeen.record(id, EARLIER);
  await lastSeen.settled();
  isAway = false;
  expect([asked, await seenAt(id)]).toEqual([1, undefined]);
  lastSeen.record(id, LATER);
  await lastSeen.settled();
  expect([asked, await seenAt(id)]).toEqual([2, LATER]);
});

test('does not replace a later time by an earlier one', async () => {
  const id = await agentOf('alice');
  const lastSeen = new LastSeen(database.db);
  for (const at of [LATER, EARLIER]) {
    lastSeen.record(id, at);
    await lastSeen.settled();
  }
  expect(await seenAt(id)).toBe(LATER);
});
