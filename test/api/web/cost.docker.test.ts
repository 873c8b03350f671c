import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { rollUpUsage } from '../../../src/ai/usage/rollups.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';
import { settle, type Call } from '../../ai/usage/support.js';

let platform: TestPlatform;
let ada: TestUser;

beforeAll(async () => {
  platform = await testPlatform({ workers: false, dead: ['docker'] });
  ada = await platform.signUp('solo');
});
afterAll(() => platform?.close());

const PATH = '/api/dashboard/cost';

const call = (user: TestUser, given: Partial<Call> = {}): Call => ({
  userId: user.id,
  agentId: null,
  provider: 'openai',
  model: 'openai/gpt-4',
  inputTokens: 100,
  outputTokens: 20,
  costUsd: '0.000001',
  at: new Date().toISOString(),
  ...given,
});

const agentOf = async (user: TestUser, name: string, desired: 'running' | 'deleted') => {
  const id = randomUUID();
  await platform.db.asUser(user.id).transaction((db) =>
    db.Agent.create({
      id,
      userId: user.id,
      name,
      subdomain: id,
      plan: 'solo',
      model: 'openai/gpt-4',
      aiProvider: 'openai',
      desired,
      deletedAt: desired === 'deleted' ? new Date() : null,
    }),
  );
  return id;
};

const daysAgo = (count: number) => new Date(Date.now() - count * 86_400_000).toISOString();

test('shows sample data, marked as such, to a user without usage', async () => {
  const { status, body } = await platform.web(ada, 'GET', PATH);
  expect([status, body.period, body.isMockData]).toEqual([200, '7d', true]);
  expect(body.message).toEqual(expect.any(String));
  expect(body.daily).toHaveLength(7);
  const sum = (list: Record<string, number>[], key: string) =>
    list.reduce((total, each) => total + (each[key] ?? 0), 0);
  expect(sum(body.agents, 'cost')).toBeCloseTo(body.summary.totalCost, 6);
  expect(sum(body.agents, 'calls')).toBe(body.summary.totalCalls);
  expect(sum(body.daily, 'tokens')).toBe(body.summary.totalTokens);
  expect(sum(body.modelBreakdown, 'percent')).toBe(100);
  expect(platform.logged.join('')).toContain('"[Cost API] Found 0 usage logs"');
});

test('shows costs by agent, day and model to six decimals', async () => {
  const user = await platform.signUp('solo');
  const kept = await agentOf(user, 'research', 'running');
  const removed = await agentOf(user, 'support', 'deleted');
  await settle(platform.db, [
    call(user, { agentId: kept, costUsd: '1.000001', model: 'large' }),
    call(user, { agentId: kept, costUsd: '0.000001', at: daysAgo(6) }),
    call(user, { agentId: removed, costUsd: '0.500000' }),
  ]);
  await rollUpUsage(platform.db);
  await settle(platform.db, [
    call(user, { costUsd: '0.000002' }),
    call(user, { costUsd: '7.000000', at: daysAgo(7) }),
    call(ada, { costUsd: '99.000000' }),
  ]);
  const { status, body } = await platform.web(user, 'GET', `${PATH}?period=7d`);
  expect(status).toBe(200);
  expect(body).not.toHaveProperty('message');
  expect(body).toMatchObject({
    period: '7d',
    isMockData: false,
    summary: { totalCost: 1.500004, totalTokens: 480, totalCalls: 4, avgCostPerCall: 0.375001 },
    agents: [
      {
        name: 'research',
        tokens: 240,
        cost: 1.000002,
        calls: 2,
        avgCostPerCall: 0.500001,
        model: 'large',
      },
      { name: 'support (removed)', cost: 0.5, calls: 1, model: 'openai/gpt-4' },
      { name: 'API', cost: 0.000002, calls: 1, model: 'openai/gpt-4' },
    ],
    modelBreakdown: [
      { model: 'large', percent: 67, cost: 1.000001 },
      { model: 'openai/gpt-4', percent: 33, cost: 0.500003 },
    ],
  });
  expect(body.daily).toHaveLength(7);
  expect(body.daily[0]).toEqual({ date: daysAgo(6).slice(0, 10), cost: 0.000001, tokens: 120 });
  expect(body.daily[6]).toMatchObject({ cost: 1.500003, tokens: 360 });
  expect(platform.logged.join('')).toContain('"[Cost API] Found 4 usage logs"');
  const longer = await platform.web(user, 'GET', `${PATH}?period=30d`);
  expect(longer.body.daily).toHaveLength(30);
  expect(longer.body.summary).toMatchObject({ totalCost: 8.500004, totalCalls: 5 });
});

test('the month to date begins on the first of the month', async () => {
  const user = await platform.signUp('solo');
  await settle(platform.db, [call(user, { at: daysAgo(40) }), call(user)]);
  const { body } = await platform.web(user, 'GET', `${PATH}?period=mtd`);
  const today = new Date().toISOString();
  expect(body.daily[0].date).toBe(`${today.slice(0, 8)}01`);
  expect(body.daily).toHaveLength(Number(today.slice(8, 10)));
  expect(body.summary.totalCalls).toBe(1);
});

test('shows no sample data if all calls are older than the period', async () => {
  const user = await platform.signUp('solo');
  await settle(platform.db, [call(user, { at: daysAgo(40) })]);
  const { body } = await platform.web(user, 'GET', PATH);
  expect(body).toMatchObject({ isMockData: false, agents: [], modelBreakdown: [] });
  expect(body.summary).toEqual({
    totalCost: 0,
    totalTokens: 0,
    totalCalls: 0,
    avgCostPerCall: 0,
  });
});

test('the dashboard requires a session and one of three periods, and the test endpoint does not exist', async () => {
  expect((await platform.web(undefined, 'GET', PATH)).status).toBe(401);
  expect((await platform.web(ada, 'GET', `${PATH}?period=1y`)).status).toBe(400);
  expect((await platform.web(ada, 'POST', '/api/test-usage', { body: {} })).status).toBe(404);
});

test('a database failure returns 500 and is logged', async () => {
  await platform.asOwner('ALTER TABLE usage_daily RENAME TO usage_elsewhere');
  try {
    const { status, body } = await platform.web(ada, 'GET', PATH);
    expect([status, body.error]).toEqual([500, 'Internal server error']);
  } finally {
    await platform.asOwner('ALTER TABLE usage_elsewhere RENAME TO usage_daily');
  }
  expect(platform.logged.join('')).toContain(
    String.raw`"[Cost API] Prisma error: relation \"usage_daily\" does not exist"`,
  );
});
