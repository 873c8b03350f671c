import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rollUpUsage } from '../../../src/ai/usage/rollups.js';
import { pagesOf } from '../../support/http.js';
import { testPlatform, type TestPlatform } from '../../support/platform.js';
import { settle, type Call } from '../../ai/usage/support.js';

let platform: TestPlatform;

const ADA = { id: 'ada' };
const BOB = { id: 'bob' };
const TODAY = new Date().toISOString();
const daysAgo = (count: number) => new Date(Date.parse(TODAY) - count * 86_400_000).toISOString();
const dateOf = (at: string) => at.slice(0, 10);

const call = (userId: string, agentId: string | null, at: string, costUsd: string): Call => ({
  userId,
  agentId,
  provider: 'openai',
  model: 'openai/gpt-4',
  inputTokens: 100,
  outputTokens: 20,
  costUsd,
  at,
});

beforeAll(async () => {
  platform = await testPlatform({ workers: false, dead: ['docker'] });
  await settle(platform.db, [
    call('ada', 'agent', TODAY, '0.000001'),
    call('ada', null, daysAgo(6), '0.250000'),
    call('ada', 'agent', daysAgo(29), '1.000000'),
    call('bob', 'other', daysAgo(1), '0.500000'),
  ]);
  await rollUpUsage(platform.db);
  await settle(platform.db, [
    call('ada', 'agent', TODAY, '0.000001'),
    call('ada', 'agent', daysAgo(30), '9.000000'),
  ]);
});
afterAll(() => platform?.close());

const read = async (user: { id: string } | undefined, path: string) => {
  const { status, body } = await platform.backend(user, 'GET', `/api/usage/${path}`);
  expect([path, status]).toEqual([path, 200]);
  return body;
};

const MODEL = { model: 'openai/gpt-4', provider: 'openai' };
const sums = (calls: number, cost_usd: number) => ({
  input_tokens: 100 * calls,
  output_tokens: 20 * calls,
  total_tokens: 120 * calls,
  cost_usd,
});

describe('usage reports', () => {
  test("sums a user's usage by day, agent and model, over 30 days", async () => {
    expect(await read(ADA, 'summary')).toEqual([
      { date: dateOf(TODAY), agent_id: 'agent', ...MODEL, ...sums(2, 0.000002), turn_count: 2 },
      { date: dateOf(daysAgo(6)), agent_id: null, ...MODEL, ...sums(1, 0.25), turn_count: 1 },
      { date: dateOf(daysAgo(29)), agent_id: 'agent', ...MODEL, ...sums(1, 1), turn_count: 1 },
    ]);
  });

  test("sums an agent's usage by model, only for its owner and the operator", async () => {
    const rows = [{ ...MODEL, ...sums(3, 1.000002), events: 3 }];
    expect(await read(ADA, 'by-agent/agent')).toEqual(rows);
    expect(await read(undefined, 'by-agent/agent')).toEqual(rows);
    expect(await read(BOB, 'by-agent/agent')).toEqual([]);
    expect(await read(ADA, 'by-agent/agent?days=1')).toMatchObject([{ events: 2 }]);
  });

  test('sums all usage by model', async () => {
    expect(await read(undefined, 'by-model')).toEqual([
      { ...MODEL, ...sums(5, 1.750002), turns: 5 },
    ]);
    expect(await read(BOB, 'by-model?days=366')).toEqual([{ ...MODEL, ...sums(1, 0.5), turns: 1 }]);
  });

  test('sums each day that has calls, over seven days', async () => {
    const first = { date: dateOf(daysAgo(6)), total_tokens: 120, cost_usd: 0.25, turns: 1 };
    const today = { date: dateOf(TODAY), total_tokens: 240, cost_usd: 0.000002, turns: 2 };
    expect(await read(ADA, 'daily')).toEqual([first, today]);
    expect(await read(undefined, 'daily')).toHaveLength(3);
    expect(await read(ADA, 'daily?days=31')).toHaveLength(4);
  });
});

test('a long summary is returned in pages', async () => {
  const whole = await read(undefined, 'summary?days=366');
  const rows: unknown[] = [];
  const ask = (path: string) => platform.backend(undefined, 'GET', path);
  for await (const { body } of pagesOf(ask, '/api/usage/summary?days=366&limit=2')) {
    rows.push(...body);
  }
  expect(rows).toEqual(whole);
  expect(rows).toHaveLength(5);
});

test.each([
  'summary?days=0',
  'summary?days=367',
  'daily?days=1.5',
  'daily?days=-1',
  'by-model?days=week',
  'tools?days=',
  'summary?limit=1001',
  'summary?cursor=x',
  `summary?cursor=${Buffer.from('["2026-02-31","","",""]').toString('base64url')}`,
  `summary?cursor=${Buffer.from(String.raw`["2026-02-01","\u0000","",""]`).toString('base64url')}`,
  'by-agent/%00',
])('answers 400 to %s', async (path) => {
  expect((await platform.backend(ADA, 'GET', `/api/usage/${path}`)).status).toBe(400);
});

test('requires the bearer key for usage reports', async () => {
  const headers = { authorization: 'Bearer wrong' };
  for (const path of ['summary', 'by-agent/x', 'by-model', 'daily', 'tools']) {
    const url = `/api/usage/${path}`;
    // A report that accepts users' keys cannot detect that a wrong key was meant as the internal key.
    const refused = path === 'tools' ? 401 : 403;
    expect((await platform.backend(ADA, 'GET', url, { headers })).status).toBe(refused);
    expect(
      (await platform.backend(ADA, 'GET', url, { headers: { authorization: '' } })).status,
    ).toBe(401);
  }
});
