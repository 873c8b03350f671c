import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { usageByTool } from '../../../src/ai/usage/reports.js';
import { settleUsage } from '../../../src/ai/usage/settle-usage.js';
import type { ToolCount } from '../../../src/ai/usage/tool-counts.js';
import { UsageJournal } from '../../../src/ai/usage/usage-journal.js';
import { usageRecord, type UsageRecord } from '../../../src/ai/usage/usage-record.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { rowsOf, usageOf } from './ledger.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database?.close());

const TODAY = { from: '2026-11-28', to: '2026-11-28' };
const AT = '2026-11-28T23:59:59.999Z';

const count = (name: string, calls: number, completed = 0, successes = 0, ms = 0): ToolCount => ({
  name,
  calls,
  completed,
  successes,
  ms,
});

const settle = (...records: readonly Partial<UsageRecord>[]) =>
  settleUsage(
    database.db,
    records.map((record) => usageOf({ at: AT, ...record })),
    [],
  );
const reported = (userId: string, period = TODAY, agentId?: string) =>
  usageByTool(database.db.asUser(userId), period, agentId);

test('the records of AI calls are summed by user, day, agent and tool', async () => {
  const [ada, bob] = [randomUUID(), randomUUID()];
  await settle(
    { userId: ada, agentId: 'a', tools: [count('look', 2, 1, 1, 100), count('say', 1)] },
    { userId: ada, agentId: 'b', tools: [count('look', 1, 2, 0, 50)] },
    { userId: ada, agentId: null, tools: [count('look', 1)] },
    { userId: ada, agentId: 'a' },
    { userId: bob, agentId: 'c', tools: [count('look', 5)] },
    { userId: ada, agentId: 'a', at: '2026-11-27T00:00:00.000Z', tools: [count('look', 7)] },
  );
  await settle({ userId: ada, agentId: 'a', tools: [count('look', 1, 1, 1, 50)] });
  expect(await reported(ada)).toEqual([
    { tool: 'look', calls: 5, successes: 2, averageMs: 50 },
    { tool: 'say', calls: 1, successes: 0, averageMs: null },
  ]);
  expect(await reported(ada, TODAY, 'b')).toEqual([
    { tool: 'look', calls: 1, successes: 0, averageMs: 25 },
  ]);
  expect(await reported(ada, { from: '2026-11-27', to: '2026-11-28' })).toMatchObject([
    { tool: 'look', calls: 12 },
    { tool: 'say' },
  ]);
  expect(await reported(bob)).toMatchObject([{ tool: 'look', calls: 5 }]);
});

test('a record that is written repeatedly counts once', async () => {
  const userId = randomUUID();
  const record = usageOf({ userId, at: AT, tools: [count('look', 1)] });
  const other = usageOf({ userId, at: AT, tools: [count('look', 1)] });
  await Promise.all(
    [[record], [record, other], [record, other]].map((all) => settleUsage(database.db, all, [])),
  );
  await settleUsage(database.db, [record, record], []);
  expect(await reported(userId)).toMatchObject([{ calls: 2 }]);
});

test('sums of one day from many concurrent processes are exact', async () => {
  const userId = randomUUID();
  const tools = [count('a', 1), count('b', 1), count('c', 1)];
  const turned = tools.toReversed();
  await Promise.all(
    Array.from({ length: 40 }, (_, each) =>
      settle(...Array(5).fill({ userId, tools: each % 2 === 0 ? tools : turned })),
    ),
  );
  expect(await reported(userId)).toMatchObject(
    ['a', 'b', 'c'].map((tool) => ({ tool, calls: 200 })),
  );
});

test('names beyond 500 of a day and agent are summed as one', { tags: 'attack' }, async () => {
  const userId = randomUUID();
  const named = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, each) => count(`tool ${from + each}`, 1));
  await settle({ userId, tools: named(0, 100) });
  await settle(
    ...[100, 200, 300, 400, 500, 600].map((from) => ({ userId, tools: named(from, from + 100) })),
  );
  await settle({ userId, tools: [count('tool 0', 1), count('new', 1)] });
  const rows = await reported(userId);
  expect(rows.slice(0, 2)).toMatchObject([
    { tool: '(other)', calls: 201 },
    { tool: 'tool 0', calls: 2 },
  ]);
  expect([rows.length, rows.reduce((sum, { calls }) => sum + calls, 0)]).toEqual([501, 702]);
  await settle({ userId, agentId: 'another', tools: [count('new', 1)] });
  expect(await reported(userId, TODAY, 'another')).toMatchObject([{ tool: 'new', calls: 1 }]);
});

test('the journal of a killed process keeps the tools of its calls', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'aps-journal-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const killed = new UsageJournal(folder);
  const record = usageOf({ tools: [count('look', 1, 1, 1, 5)] });
  killed.append(record);
  killed.open.begin(randomUUID(), () => record);
  const read = new UsageJournal(folder).abandoned(-1).flatMap((segment) => segment.read().records);
  expect(read).toEqual([record, record]);
});

test('a journal with tools is read by the previous release, and one of a later release by this one', () => {
  const record = usageOf({ tools: [count('look', 1)] });
  const { tools: _tools, ...known } = record;
  // The previous release has the same schema, without tools.
  expect(usageRecord.omit({ tools: true }).parse(record)).toEqual(known);
  expect(usageRecord.parse({ ...record, tools: { check: 1 } })).toEqual({
    ...known,
    tools: undefined,
  });
});

test('a record of the previous release, without tools, is settled', async () => {
  const userId = randomUUID();
  await settle({ userId });
  const sql = `SELECT calls FROM usage_pending WHERE user_id = '${userId}'`;
  expect(await rowsOf(database.db, sql)).toEqual([{ calls: 1 }]);
  expect(await reported(userId)).toEqual([]);
});
