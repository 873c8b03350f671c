// @module-tag attack
import { afterAll, beforeAll, expect, test } from 'vitest';
import { grantPlan } from '../../../src/accounts/accounts/subscriptions.js';
import { storeSamples } from '../../../src/agents/metrics/store-samples.js';
import type { Sample } from '../../../src/agents/metrics/agent-meter.js';
import { rollUpUsage } from '../../../src/ai/usage/rollups.js';
import { settleUsage } from '../../../src/ai/usage/settle-usage.js';
import { PLATFORM_TOOLS } from '../../../src/ai/usage/usage-record.js';
import { usageOf } from '../../ai/usage/ledger.js';
import { walletSite, type WalletSite } from '../../money/wallets/support.js';
import { queryRows } from '../../platform/database/catalog.js';
import { insertSql, ROWS } from '../../platform/database/rows.js';
import { makeAccount, signIn, type TestAccount } from '../../support/account.js';
import { ADMIN_EMAIL } from '../../support/platform-environment.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

let site: WalletSite;
let ada: TestAccount;
let bob: TestAccount;
let admin: TestAccount;

beforeAll(async () => {
  site = await walletSite();
  const { db } = site.database;
  [ada, bob] = [await makeAccount(db), await makeAccount(db)];
  admin = await makeAccount(db, { email: ADMIN_EMAIL, isAdmin: true });
});
afterAll(() => site?.close());

const owner = (sql: string) => queryRows(site.database.ownerUrl, sql);
const insert = (table: string, user: TestAccount, row: Record<string, string | number>) =>
  owner(insertSql(table, { ...ROWS[table]?.(user.id, 1), ...row }));

let agents = 0;
async function newAgent(user: TestAccount, row: Record<string, string> = {}): Promise<string> {
  const id = `agent-of-metrics-${(agents += 1)}`;
  const names = { id, name: id, subdomain: id, status: 'active', desired: 'running' };
  await insert('agents', user, { ...names, host: 'local', ...row });
  return id;
}

const asPlatform = (path: string, user?: string) =>
  site.backend(user === undefined ? undefined : { id: user }, 'GET', path);
const metricsOf = (user: TestAccount, rest: string) =>
  asPlatform(`/api/metrics/${user.id}/${rest}`, user.id);
const overviewOf = async (user: TestAccount, query = '') => {
  const cookie = await signIn(site.database.db, user);
  return site.web({ cookie }, 'GET', `/api/metrics${query}`);
};

const sampleOf = (user: TestAccount, agentId: string, sample: Partial<Sample> = {}): Sample => ({
  ...{ agentId, userId: user.id, cpuPercent: 10, memoryBytes: 1_000, memoryLimitBytes: 4_000 },
  ...{ networkIn: 100, networkOut: 50 },
  ...sample,
});
const store = (at: number, samples: readonly Sample[], host = 'local') =>
  storeSamples(site.database.db, host, new Date(Math.floor(at / MINUTE) * MINUTE), samples);

type Points = [string, number | null][];
const pointsOf = ({ body }: Awaited<ReturnType<typeof metricsOf>>, name: string): Points =>
  body.series.find(({ metric }: { metric: string }) => metric === name).points;
const valuesOf = (points: Points) => points.flatMap(([, value]) => (value ? [value] : []));

test.each([
  ['1h', 60, 60],
  ['24h', 300, 288],
  ['7d', 3_600, 168],
  ['30d', 14_400, 180],
  ['90d', 86_400, 90],
])(
  'a series of %s has a point for every step, null without a measurement',
  async (period, step, count) => {
    const user = await makeAccount(site.database.db);
    const { body, status } = await metricsOf(user, `historical?period=${period}`);
    expect([status, body.userId, body.period, body.step]).toEqual([200, user.id, period, step]);
    expect(Date.parse(body.to) - Date.parse(body.from)).toBe(step * count * 1_000);
    expect(Date.parse(body.to)).toBeGreaterThan(Date.now());
    expect(Date.parse(body.from) % (step * 1_000)).toBe(0);
    const units = body.series.map(({ metric, unit }: { metric: string; unit: string }) => [
      metric,
      unit,
    ]);
    expect(units).toEqual([
      ['cpu', 'percent'],
      ['memory', 'bytes'],
      ['network_in', 'bytes'],
      ['network_out', 'bytes'],
      ['calls', 'calls'],
      ['tokens', 'tokens'],
      ['cost', 'USD'],
    ]);
    for (const { agentId, metric, points } of body.series) {
      expect(agentId).toBe(null);
      const empty = ['calls', 'tokens', 'cost'].includes(metric) ? 0 : null;
      expect(points).toEqual(
        Array.from({ length: count }, (_, n) => [
          new Date(Date.parse(body.from) + n * step * 1_000).toISOString(),
          empty,
        ]),
      );
    }
  },
);

test('a series sums the averages of agents, and the bytes of a step', async () => {
  const user = await makeAccount(site.database.db);
  const [one, two] = [await newAgent(user), await newAgent(user)];
  const now = Date.now();
  const at = now - 2 * HOUR;
  const step = Math.floor(at / (5 * MINUTE)) * 5 * MINUTE;
  await store(step, [
    sampleOf(user, one, { cpuPercent: 10 }),
    sampleOf(user, two, { cpuPercent: 50 }),
  ]);
  await store(step + MINUTE, [sampleOf(user, one, { cpuPercent: 30, memoryBytes: 3_000 })]);
  const all = await metricsOf(user, 'historical');
  expect(all.body.period).toBe('24h');
  expect(pointsOf(all, 'cpu').filter(([, value]) => value !== null)).toEqual([
    [new Date(step).toISOString(), 70],
  ]);
  expect(valuesOf(pointsOf(all, 'memory'))).toEqual([3_000]);
  expect(valuesOf(pointsOf(all, 'network_in'))).toEqual([300]);
  expect(valuesOf(pointsOf(all, 'network_out'))).toEqual([150]);

  const single = await metricsOf(user, `historical?period=24h&agentId=${two}`);
  expect(single.body.series[0].agentId).toBe(two);
  expect(valuesOf(pointsOf(single, 'cpu'))).toEqual([50]);
  const hours = await metricsOf(user, 'historical?period=7d');
  const sum = (points: Points) => valuesOf(points).reduce((total, value) => total + value, 0);
  expect(sum(pointsOf(hours, 'network_in'))).toBe(300);
  expect(valuesOf(pointsOf(hours, 'cpu'))).toEqual([70]);
});

test('a sample is stored once a minute, and only for an agent of the host', async () => {
  const user = await makeAccount(site.database.db);
  const [agent, away] = [await newAgent(user), await newAgent(user, { host: 'another' })];
  const removed = await newAgent(user, { desired: 'deleted' });
  const at = Date.now() - HOUR;
  const samples = [
    ...[agent, away, removed, 'agent-of-nobody'].map((id) => sampleOf(user, id)),
    sampleOf(bob, agent),
  ];
  expect(await store(at, samples)).toBe(1);
  expect(await store(at, samples)).toBe(0);
  const rows = await owner(
    `SELECT u.agent_id, u.step, u.samples FROM agent_samples s
       JOIN agent_sample_sums u USING (agent_id) WHERE s.user_id = '${user.id}' ORDER BY u.step`,
  );
  expect(rows).toEqual(
    [300, 3_600, 14_400, 86_400].map((step) => ({ agent_id: agent, step, samples: 1 })),
  );
});

test('many samples of a pass are stored', async () => {
  const user = await makeAccount(site.database.db);
  const ids = await Promise.all(Array.from({ length: 12 }, () => newAgent(user)));
  const many = ids.flatMap((id) => Array.from({ length: 100 }, () => sampleOf(user, id)));
  expect(await store(Date.now(), many)).toBe(12);
});

test('usage counts each call in one step, rolled up or not', async () => {
  const user = await makeAccount(site.database.db);
  const now = Date.now();
  const tools = [{ name: 'look', calls: 3, completed: 2, successes: 1, ms: 500 }];
  const used = (ago: number, agentId: string | null = 'a') =>
    usageOf({ userId: user.id, agentId, at: new Date(now - ago).toISOString(), tools });
  const { db } = site.database;
  await settleUsage(db, [used(30_000), used(23.9 * HOUR), used(24.1 * HOUR), used(40 * DAY)], []);
  await rollUpUsage(db);
  await settleUsage(db, [used(40_000, null), used(25 * HOUR)], []);
  const callsOf = async (period: string, agent = '') => {
    const values = valuesOf(
      pointsOf(await metricsOf(user, `historical?period=${period}${agent}`), 'calls'),
    );
    return values.reduce((sum, value) => sum + value, 0);
  };
  expect(await callsOf('1h')).toBe(2);
  expect(await callsOf('24h')).toBe(3);
  expect(await callsOf('7d')).toBe(5);
  expect(await callsOf('30d')).toBe(5);
  expect(await callsOf('90d')).toBe(6);
  const agent = await newAgent(user);
  await settleUsage(db, [used(30_000, agent)], []);
  expect(await callsOf('24h', `&agentId=${agent}`)).toBe(1);

  const { body } = await overviewOf(user);
  expect(body.usage24h).toEqual({ calls: 4, tokens: 20, costUsd: 0.000492 });
  const { tools: shown } = (await metricsOf(user, 'performance?period=1h')).body;
  expect(shown).toEqual({ calls: 9, successes: 3, avgMs: 250 });
  const summary = await metricsOf(user, 'summary');
  expect(summary.body.usage).toEqual({ calls: 6, tokens: 30, costUsd: 0.000738 });
});

test("calls of the platform's own tools are calls of tools, and none of AI", async () => {
  const user = await makeAccount(site.database.db);
  const tools = [{ name: 'hostmcp/agents_list', calls: 1, completed: 1, successes: 1, ms: 40 }];
  const used = (ago: number) =>
    usageOf({
      ...{ userId: user.id, provider: PLATFORM_TOOLS, model: PLATFORM_TOOLS, tools },
      ...{ inputTokens: 0, outputTokens: 0, costUsd: '0' },
      at: new Date(Date.now() - ago).toISOString(),
    });
  const { db } = site.database;
  await settleUsage(db, [used(30_000), used(23.9 * HOUR)], []);
  await settleUsage(db, [used(20_000)], []);
  await rollUpUsage(db);
  for (const [period, calls] of [
    ['1h', 2],
    ['24h', 3],
    ['7d', 3],
    ['90d', 3],
  ] as const) {
    const shown = await metricsOf(user, `performance?period=${period}`);
    expect([period, shown.body.tools]).toEqual([period, { calls, successes: calls, avgMs: 40 }]);
    const series = await metricsOf(user, `historical?period=${period}`);
    expect(valuesOf(pointsOf(series, 'calls'))).toEqual([]);
  }
  const none = { calls: 0, tokens: 0, costUsd: 0 };
  expect((await overviewOf(user)).body.usage24h).toEqual(none);
  expect((await metricsOf(user, 'summary')).body.usage).toEqual(none);
});

const transition = (
  user: TestAccount,
  agent: string,
  [ago, from, to, cause]: readonly [number, string, string, string],
) =>
  insert('watchdog_transitions', user, {
    id: `${agent}-${ago}`,
    agent_id: agent,
    from_state: from,
    to_state: to,
    cause,
    at: new Date(Date.now() - ago).toISOString(),
  });

test('availability is the share of the desired running time in state running', async () => {
  const user = await makeAccount(site.database.db);
  const [agent, gone] = [
    await newAgent(user),
    await newAgent(user, {
      desired: 'deleted',
      deleted_at: new Date(Date.now() - 2 * HOUR).toISOString(),
    }),
  ];
  for (const change of [
    [10 * DAY, 'starting', 'running', 'healthy'],
    [10 * HOUR, 'running', 'degraded', 'exit'],
    [9 * HOUR, 'degraded', 'repairing', 'exit'],
    [8 * HOUR, 'repairing', 'running', 'repaired'],
    [5 * HOUR, 'running', 'stopped', 'operation'],
    [4 * HOUR, 'stopped', 'starting', 'operation'],
    [3 * HOUR, 'starting', 'running', 'healthy'],
    [2 * HOUR, 'running', 'degraded', 'unhealthy'],
    [HOUR, 'degraded', 'running', 'healthy'],
  ] as const) {
    await transition(user, agent, change);
  }
  await transition(user, gone, [4 * HOUR, 'starting', 'running', 'healthy']);
  const { body } = await metricsOf(user, 'performance?period=24h');
  const [only] = body.agents;
  expect(body.agents).toHaveLength(1);
  // 23 of some 24 hours are desired, and in 4 of these the agent did not run.
  expect(only).toMatchObject({ agentId: agent, name: agent, crashes: 1, repairs: 1, turns: 0 });
  expect(only.availability).toBeCloseTo((19 / 23) * 100, 0);
  expect(body.availability).toBeCloseTo((21 / 25) * 100, 0);
  const { body: summary } = await metricsOf(user, 'summary');
  expect(summary.incidents).toEqual({ crashes: 1, repairs: 1 });
  const { body: overview } = await overviewOf(user);
  expect(overview.incidents24h).toEqual({ crashes: 1, repairs: 1 });
});

test('availability is null without desired running time', async () => {
  const user = await makeAccount(site.database.db);
  const agent = await newAgent(user);
  await transition(user, agent, [DAY, 'running', 'stopped', 'operation']);
  await transition(user, agent, [HOUR, 'stopped', 'running', 'stop_refused']);
  const { body } = await metricsOf(user, 'performance');
  expect(body.availability).toBe(null);
  expect(body.agents).toMatchObject([{ agentId: agent, availability: null }]);
  expect((await metricsOf(user, 'summary')).body.availability).toBe(null);
});

test('chat shows the turns, and the latencies of complete ones', async () => {
  const user = await makeAccount(site.database.db);
  const [agent, other] = [await newAgent(user), await newAgent(user)];
  const answer = (of: string, n: number, row: Record<string, string | number>) =>
    insert('messages', user, {
      ...{ id: `${of}-${n}`, agent_id: of, role: 'assistant', position: agents * 10_000 + n },
      created_at: new Date(Date.now() - 2 * HOUR).toISOString(),
      ...row,
    });
  for (let n = 1; n <= 100; n += 1) await answer(agent, n, { took_ms: n * 10 });
  await answer(agent, 101, { took_ms: 90_000, status: 'failed' });
  await answer(agent, 102, { role: 'user' });
  await answer(agent, 103, { created_at: new Date(Date.now() - 3 * DAY).toISOString() });
  await answer(other, 104, { took_ms: 7 });
  const { body } = await metricsOf(user, 'performance?period=24h');
  expect(body.chat).toEqual({ turns: 102, failed: 1, p50Ms: 500, p95Ms: 950, p99Ms: 990 });
  expect(body.agents).toMatchObject([
    { agentId: other, turns: 1, failed: 0, p95Ms: 7 },
    { agentId: agent, turns: 101, failed: 1, p95Ms: 951 },
  ]);
  expect((await metricsOf(user, 'performance?period=1h')).body.chat).toEqual({
    turns: 0,
    failed: 0,
    p50Ms: null,
    p95Ms: null,
    p99Ms: null,
  });
  const { body: overview } = await overviewOf(user);
  expect(overview.chat24h).toEqual({ turns: 102, failed: 1, p50Ms: 500, p95Ms: 950 });
  expect((await metricsOf(user, 'summary')).body.chat).toEqual({ turns: 103, failed: 1 });
});

test('provisioning shows creations, and the time until they succeeded', async () => {
  const user = await makeAccount(site.database.db);
  const agent = await newAgent(user);
  const now = Date.now();
  const operation = (n: number, row: Record<string, string>) =>
    insert('operations', user, {
      ...{ id: `${agent}-${n}`, agent_id: agent, kind: 'provision', status: 'succeeded' },
      requested_at: new Date(now - HOUR).toISOString(),
      finished_at: new Date(now - HOUR + n * 1_000).toISOString(),
      ...row,
    });
  await operation(10, {});
  await operation(20, {});
  await operation(30, { status: 'failed' });
  await operation(40, { status: 'cancelled' });
  await operation(50, { kind: 'start' });
  const { body } = await metricsOf(user, 'performance?period=24h');
  expect(body.provisioning).toEqual({ count: 3, failed: 1, p50Ms: 15_000, p95Ms: 19_500 });
});

test('the overview counts agents, and sums the last measurement of running ones', async () => {
  const user = await makeAccount(site.database.db);
  await grantPlan(site.database.db, user.id, 'label', {
    actor: 'operator',
    requestId: 'a-request',
  });
  const [one, two] = [await newAgent(user), await newAgent(user)];
  const [stopped, failed] = [
    await newAgent(user, { status: 'stopped', desired: 'stopped' }),
    await newAgent(user, { status: 'error' }),
  ];
  await newAgent(user, { status: 'pending' });
  await newAgent(user, { desired: 'deleted' });
  const none = { cpuPercent: null, memoryBytes: null, memoryLimitBytes: null };
  expect((await overviewOf(user)).body.resources).toEqual(none);
  const now = Date.now();
  await store(now - MINUTE, [sampleOf(user, one, { cpuPercent: 90 }), sampleOf(user, stopped)]);
  await store(now, [sampleOf(user, one), sampleOf(user, failed)]);
  await store(now - 10 * MINUTE, [sampleOf(user, two)]);
  const { body, status } = await overviewOf(user);
  const counts = { total: 5, running: 2, stopped: 1, provisioning: 1, error: 1 };
  expect([status, body.scope, body.agents]).toEqual([200, 'user', counts]);
  expect(body.resources).toEqual({ cpuPercent: 10, memoryBytes: 1_000, memoryLimitBytes: 4_000 });
  const summary = await metricsOf(user, 'summary');
  expect(summary.body).toMatchObject({ userId: user.id, plan: 'label', agents: counts });
});

test('only administrators see the whole platform', async () => {
  const refused = await overviewOf(ada, '?scope=platform');
  expect([refused.status, refused.body.code]).toEqual([403, 'ADMIN_REQUIRED']);
  const own = await newAgent(bob);
  await store(Date.now(), [sampleOf(bob, own)]);
  const { body, status } = await overviewOf(admin, '?scope=platform');
  expect([status, body.scope]).toEqual([200, 'platform']);
  expect(body.agents.total).toBeGreaterThan(0);
  expect(body.usage24h.calls).toBeGreaterThan(0);
  expect(body.chat24h.turns).toBeGreaterThan(0);
  expect((await overviewOf(admin)).body.agents.total).toBe(0);
  expect((await overviewOf(ada, '?scope=all')).status).toBe(400);
});

test.each(['historical', 'performance', 'summary'])(
  '%s shows a user only to the platform',
  async (report) => {
    const path = `/api/metrics/${ada.id}/${report}`;
    expect((await asPlatform(path)).status).toBe(200);
    expect((await asPlatform(path, ada.id)).status).toBe(200);
    expect((await asPlatform(path, bob.id)).status).toBe(404);
    expect((await asPlatform('/api/metrics/nobody-has-this-id/' + report)).status).toBe(404);
    const headers = { authorization: '' };
    expect((await site.backend(undefined, 'GET', path, { headers })).status).toBe(401);
    expect((await asPlatform(`/api/metrics/%00/${report}`)).status).toBe(400);
    if (report === 'summary') return;
    for (const period of ['2h', '', '24H', '1h&period=1h']) {
      expect((await asPlatform(`${path}?period=${period}`)).status).toBe(400);
    }
  },
);

test('an agent of another user has no series', async () => {
  const own = await newAgent(bob);
  for (const agentId of [own, 'nothing', '%27']) {
    const { status } = await metricsOf(ada, `historical?agentId=${agentId}`);
    expect(status).toBe(404);
  }
});
