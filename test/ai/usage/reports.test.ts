import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../../src/platform/database/database.js';
import { costDashboard } from '../../../src/ai/usage/cost-dashboard.js';
import { percentagesOf } from '../../../src/ai/usage/percentages.js';
import { daysOf, lastDays, monthToDate } from '../../../src/ai/usage/period.js';
import {
  usageByModel,
  usageDaily,
  usageSummary,
  type SummaryUsage,
} from '../../../src/ai/usage/reports.js';
import { rollUpUsage } from '../../../src/ai/usage/rollups.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { microsOf, naiveSums, randomCalls, settle, type Call } from './support.js';

let database: TestDatabase;
let db: Database;
const all: Call[] = [];

const NOW = new Date('2026-03-01T00:00:00.500Z');
const WEEK = lastDays(7, NOW);
const DAYS = daysOf(lastDays(12, NOW));
const log = async (calls: Call[]) => {
  await settle(db, calls);
  all.push(...calls);
};

beforeAll(async () => {
  database = await testDatabase();
  db = database.db;
  const days = { users: ['ada', 'bob'], days: DAYS };
  await log(randomCalls(400, 11, days));
  await rollUpUsage(db);
  // Partly rolled up, including days that were rolled up before.
  await log(randomCalls(200, 12, days));
  await db.call({ text: 'SELECT roll_up_usage(40)' }, []);
});
afterAll(() => database?.close());

const tenantOf = (user: string | undefined) =>
  user === undefined ? db.asPlatform() : db.asUser(user);
const within = (user: string | undefined, { from, to } = WEEK) =>
  all.filter(({ userId, at }) => {
    const day = at.slice(0, 10);
    return (user === undefined || userId === user) && day >= from && day <= to;
  });
const dayOf = ({ at }: Call) => at.slice(0, 10);
const unordered = (rows: readonly object[]) =>
  new Set(rows.map((row) => JSON.stringify(sorted(row))));
const sorted = (row: object) => Object.fromEntries(Object.entries(row).sort());

describe.each(['ada', undefined])('usage reports for %s', (user) => {
  test('usage by day, agent and model equals naive sums over the logged calls, page by page', async () => {
    const rows: SummaryUsage[] = [];
    for (;;) {
      const page = await usageSummary(tenantOf(user), WEEK, { limit: 7, after: rows.at(-1) });
      rows.push(...page);
      if (page.length < 7) break;
    }
    const expected = naiveSums(within(user), (call) => ({
      day: dayOf(call),
      agentId: call.agentId ?? '',
      provider: call.provider,
      model: call.model,
    }));
    expect(unordered(rows)).toEqual(unordered(expected));
    expect(rows).toHaveLength(expected.length);
    expect(rows.map(({ day }) => day)).toEqual(
      rows
        .map(({ day }) => day)
        .sort()
        .reverse(),
    );
  });

  test('usage by model, also of one agent, equals naive sums over the logged calls', async () => {
    const key = ({ provider, model }: Call) => ({ provider, model });
    const rows = await usageByModel(tenantOf(user), WEEK);
    expect(unordered(rows)).toEqual(unordered(naiveSums(within(user), key)));
    const costs = rows.map(({ costUsd }) => costUsd);
    expect(costs).toEqual([...costs].sort((a, b) => b - a));
    const ofAgent = await usageByModel(tenantOf(user), WEEK, 'agent-1');
    const calls = within(user).filter(({ agentId }) => agentId === 'agent-1');
    expect(unordered(ofAgent)).toEqual(unordered(naiveSums(calls, key)));
  });

  test('usage by day equals naive sums over the logged calls', async () => {
    const expected = naiveSums(within(user), (call) => ({ day: dayOf(call) }));
    expect(unordered(await usageDaily(tenantOf(user), WEEK))).toEqual(unordered(expected));
  });
});

test('a report includes a call as soon as it is logged, and only once', async () => {
  const total = async () =>
    (await usageDaily(db.asPlatform(), WEEK)).reduce((sum, { calls }) => sum + calls, 0);
  const before = await total();
  await log(randomCalls(5, 13, { users: ['carol'], days: ['2026-03-01'] }));
  expect(await total()).toBe(before + 5);
  // Roll-up passes run at the same time, one call per pass.
  let passing = true;
  const passes = (async () => {
    for (let n = 0; n < 40; n++) await db.call({ text: 'SELECT roll_up_usage(1)' }, []);
  })().finally(() => (passing = false));
  while (passing) expect(await total()).toBe(before + 5);
  await passes;
  await rollUpUsage(db);
  expect(await total()).toBe(before + 5);
});

describe('cost dashboard', () => {
  test('the dashboard shows every day, agent and model of the period', async () => {
    const calls = within('ada');
    const micros = (of: readonly Call[]) => of.reduce((sum, call) => sum + microsOf(call), 0);
    const dashboard = await costDashboard(db.asUser('ada'), WEEK);
    expect(dashboard?.summary).toEqual({
      totalCost: micros(calls) / 1e6,
      totalTokens: naiveSums(calls, () => ({}))[0]?.totalTokens,
      totalCalls: calls.length,
      avgCostPerCall: Math.round(micros(calls) / calls.length) / 1e6,
    });
    expect(dashboard?.daily).toEqual(
      daysOf(WEEK).map((date) => {
        const [sums] = naiveSums(
          calls.filter((call) => dayOf(call) === date),
          () => ({}),
        );
        return { date, cost: sums?.costUsd ?? 0, tokens: sums?.totalTokens ?? 0 };
      }),
    );
    const agents = naiveSums(calls, ({ agentId }) => ({ agentId })).sort(
      (a, b) => b.costUsd - a.costUsd,
    );
    expect(dashboard?.agents).toEqual(
      agents.map(({ agentId, totalTokens, costUsd, calls: count }) => {
        const models = naiveSums(
          calls.filter((call) => call.agentId === agentId),
          ({ model }) => ({ model }),
        ).sort((a, b) => b.costUsd - a.costUsd);
        return {
          name: agentId === null ? 'API' : `Agent ${agentId}`,
          tokens: totalTokens,
          cost: costUsd,
          calls: count,
          avgCostPerCall: Math.round((costUsd * 1e6) / count) / 1e6,
          model: models[0]?.model,
        };
      }),
    );
    const models = naiveSums(calls, ({ model }) => ({ model })).sort(
      (a, b) => b.costUsd - a.costUsd,
    );
    expect(dashboard?.modelBreakdown.map(({ model, cost }) => [model, cost])).toEqual(
      models.map(({ model, costUsd }) => [model, costUsd]),
    );
    expect(dashboard?.modelBreakdown.reduce((sum, { percent }) => sum + percent, 0)).toBe(100);
  });

  test('the dashboard shows zeros if all calls are older, and is undefined without any calls', async () => {
    const later = { from: '2027-01-01', to: '2027-01-02' };
    expect(await costDashboard(db.asUser('ada'), later)).toEqual({
      summary: { totalCost: 0, totalTokens: 0, totalCalls: 0, avgCostPerCall: 0 },
      agents: [],
      daily: [
        { date: '2027-01-01', cost: 0, tokens: 0 },
        { date: '2027-01-02', cost: 0, tokens: 0 },
      ],
      modelBreakdown: [],
    });
    expect(await costDashboard(db.asUser('nobody'), WEEK)).toBeUndefined();
  });
});

test('percentages add up to 100, or to 0 without costs', () => {
  expect(percentagesOf([1, 1, 1])).toEqual([34, 33, 33]);
  expect(percentagesOf([999, 1])).toEqual([100, 0]);
  expect(percentagesOf([0, 0])).toEqual([0, 0]);
  expect(percentagesOf([])).toEqual([]);
});

test('periods consist of UTC days and include today', () => {
  const midnight = new Date('2026-03-01T00:00:00Z');
  expect(lastDays(7, midnight)).toEqual({ from: '2026-02-23', to: '2026-03-01' });
  expect(lastDays(1, new Date('2026-02-28T23:59:59.999Z'))).toEqual({
    from: '2026-02-28',
    to: '2026-02-28',
  });
  expect(monthToDate(midnight)).toEqual({ from: '2026-03-01', to: '2026-03-01' });
  expect(daysOf(lastDays(3, midnight))).toEqual(['2026-02-27', '2026-02-28', '2026-03-01']);
});
