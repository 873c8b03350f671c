import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runSwarmId } from '../../workflows/ids.js';
import { textsOfHistories } from '../support/histories.js';
import { testPlatform, type TestPlatform, type TestUser } from '../support/platform.js';
import { workerLog } from '../support/temporal.js';
import { until } from '../support/until.js';

const TASK = `Plan a tour ${randomUUID()}`;

let platform: TestPlatform;
let ada: TestUser;
let agents: string[];

beforeAll(async () => {
  platform = await testPlatform({ env: { WATCHDOG_CHECK_INTERVAL: '60m' } });
  ada = await platform.signUp('network');
  agents = await Promise.all([1, 2, 3].map(() => platform.runningAgent(ada)));
});
afterAll(() => platform?.close());

const path = '/api/swarms';
const create = async (more: object = {}) => {
  const body = { name: 'a swarm', task: TASK, agentIds: agents, ...more };
  const made = await platform.web(ada, 'POST', path, { body });
  expect([made.status, made.body.swarm?.status]).toEqual([201, 'pending']);
  return made.body.swarm.id as string;
};
const get = async (id: string) => (await platform.web(ada, 'GET', `${path}?id=${id}`)).body.swarm;
const change = (id: string, action: string) =>
  platform.web(ada, 'PUT', path, { body: { id, action } });
const ended = (id: string, status: string) =>
  until(async () => {
    const swarm = await get(id);
    return swarm.status === status && swarm;
  }, 60_000);
const asked = async (agentId: string, id: string) => {
  const query = `agentId=${agentId}&conversation=swarm-${id}`;
  const { body } = await platform.web(ada, 'GET', `/api/chat?${query}`);
  return (body.messages as { role: string }[]).filter(({ role }) => role === 'user').length;
};

test('agents answer a task together, and one of them merges the answers', async () => {
  const id = await create({ coordinatorId: agents[1] });
  const swarm = await ended(id, 'completed');
  expect(swarm).toMatchObject({
    task: TASK,
    strategy: 'parallel',
    coordinatorId: agents[1],
    progress: { done: 3, total: 3 },
    members: agents.map((agentId) => ({ agentId, status: 'done', error: null })),
    error: null,
  });
  expect(typeof swarm.result).toBe('string');
  expect(await Promise.all(agents.map((agentId) => asked(agentId, id)))).toEqual([1, 2, 1]);
  const described = await platform.temporal.client.workflow.getHandle(runSwarmId(id)).describe();
  expect(await described.staticSummary()).toBe(`Swarm ${id}`);
  const { body } = await platform.web(ada, 'GET', path);
  expect([body.count, body.swarms[0].id]).toEqual([1, id]);
  expect(JSON.stringify(body)).not.toContain(TASK);
});

test('a stopped member ends a sequence, and a retry continues with the other members', async () => {
  const [, second = ''] = agents;
  await platform.web(ada, 'POST', `/api/agents/${second}/stop?wait=60`);
  const id = await create({ strategy: 'sequential' });
  const failed = await ended(id, 'failed');
  expect(failed.error).toBe('Member 2 failed: The agent is not running');
  expect(failed.members.map(({ status }: { status: string }) => status)).toEqual([
    'done',
    'failed',
    'waiting',
  ]);
  await platform.web(ada, 'POST', `/api/agents/${second}/start?wait=60`);
  await until(async () => (await change(id, 'retry')).status === 200);
  const completed = await ended(id, 'completed');
  expect(completed.result).toBe(completed.members[2].output);
  expect(await Promise.all(agents.map((agentId) => asked(agentId, id)))).toEqual([1, 1, 1]);
});

test('a cancelled swarm sends no further question', async () => {
  const [first = ''] = agents;
  await platform.orderAgent(first, { answerDelayMs: 3_000 });
  const id = await create({ strategy: 'sequential' });
  await until(async () => (await asked(first, id)) === 1);
  const cancelled = await change(id, 'cancel');
  expect([cancelled.status, cancelled.body.swarm.status]).toEqual([200, 'cancelled']);
  expect((await change(id, 'cancel')).body.code).toBe('SWARM_STATE');
  await until(async () => (await get(id)).members[0].status === 'done');
  await platform.orderAgent(first, { answerDelayMs: 0 });
  await until(async () => (await change(id, 'retry')).status === 200);
  expect((await ended(id, 'completed')).progress).toEqual({ done: 3, total: 3 });
  expect(await Promise.all(agents.map((agentId) => asked(agentId, id)))).toEqual([1, 1, 1]);
});

test('a swarm that is created while no worker and no Temporal can be reached runs afterwards', async () => {
  await platform.stopWorkers();
  const id = await create();
  await platform.startWorkers();
  expect(await ended(id, 'completed')).toMatchObject({ progress: { done: 3, total: 3 } });
});

test('a swarm whose worker ends in the middle continues, and sends no question twice', async () => {
  const [first = '', ...others] = agents;
  await platform.orderAgent(first, { answerDelayMs: 60_000 });
  const id = await create();
  await until(async () => (await get(id)).progress.done === others.length);
  // The worker aborts the question that the first agent still works on.
  await platform.stopWorkers();
  await platform.orderAgent(first, { answerDelayMs: 0 });
  await platform.startWorkers();
  const swarm = await ended(id, 'completed');
  expect(swarm.members[0]).toMatchObject({ status: 'failed', output: null });
  expect(swarm.members[0].error).toContain('not sent again');
  // The first agent is the coordinator, too.
  expect(await Promise.all(agents.map((agentId) => asked(agentId, id)))).toEqual([2, 1, 1]);
});

test.each([
  [{ name: '' }, 'name is required'],
  [{ name: 'x'.repeat(101) }, 'name must be at most 100 characters'],
  [{ task: 'x'.repeat(16_001) }, 'task must be at most 16000 characters'],
  [{ agentIds: ['a'] }, 'agentIds must be at least 2 entries'],
  [{ agentIds: ['a', 'a'] }, 'agentIds must name each agent once'],
  [{ agentIds: Array.from({ length: 21 }, (_, n) => `a${n}`) }, 'agentIds must be at most 20'],
  [{ strategy: 'round' }, 'strategy'],
  [{ coordinatorId: 'another' }, 'coordinatorId must be one of agentIds'],
])('refuses %j', async (more, error) => {
  const body = { name: 'a', task: 'a', agentIds: agents, ...more };
  const refused = await platform.web(ada, 'POST', path, { body });
  expect([refused.status, refused.body.error]).toEqual([400, expect.stringContaining(error)]);
});

test('no history or log has a text of a swarm', { tags: 'attack' }, async () => {
  const { texts } = await textsOfHistories(platform.temporal.client);
  expect(texts.some((text) => text.includes('beginSwarm'))).toBe(true);
  for (const text of [texts.join('\n'), platform.logged.join('\n'), workerLog.join('\n')]) {
    expect(text).not.toContain(TASK);
  }
});
