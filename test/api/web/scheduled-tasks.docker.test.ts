import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { TaskSchedules } from '../../../temporal/task-schedules.js';
import { followRows } from '../../../worker/follow-rows.js';
import { followedTasks } from '../../../worker/schedule-tasks.js';
import { TaskRuns } from '../../../src/agents/tasks/task-runs.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';
import { workerLog } from '../../support/temporal.js';

const PATH = '/api/scheduled-tasks';
const TEXT = 'Is the small shop open?';

let platform: TestPlatform;
let ada: TestUser;
let agentId: string;

beforeAll(async () => {
  platform = await testPlatform();
  ada = await platform.signUp('network');
  agentId = await platform.runningAgent(ada, { model: 'gpt-4' });
});
afterEach(async () => {
  platform.provider.behave();
  await platform.asOwner('DELETE FROM scheduled_tasks');
});
afterAll(() => platform?.close());

const post = (more: object = {}) =>
  platform.web(ada, 'POST', PATH, {
    body: { agentId, name: 'watch', message: TEXT, schedule: '30m', ...more },
  });
const put = (body: object) => platform.web(ada, 'PUT', PATH, { body });
const get = (query: string) => platform.web(ada, 'GET', `${PATH}${query}`);
/** Makes the schedules, as a worker does. */
const follow = ({ db, log, temporal } = platform) =>
  followRows(
    followedTasks({
      database: db,
      schedules: new TaskSchedules(temporal.client),
      runs: new TaskRuns(db, { adminEmails: [] }),
      log,
    }),
  );

test('creates, shows, changes and removes a task', async () => {
  const { status, body } = await post({ schedule: '0 9 * * MON-FRI', timezone: 'Europe/Berlin' });
  expect(status).toBe(201);
  const { id } = body.task;
  expect(body).toEqual({
    task: {
      id: expect.any(String),
      agentId,
      name: 'watch',
      message: TEXT,
      schedule: '0 9 * * MON-FRI',
      timezone: 'Europe/Berlin',
      enabled: true,
      status: 'active',
      reason: null,
      nextRun: expect.any(String),
      lastRun: null,
      lastStatus: null,
      runs: 0,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    },
  });
  await follow();
  const schedule = platform.temporal.client.schedule.getHandle(`scheduled-task-${id}`);
  const [next] = (await schedule.describe()).info.nextActionTimes;
  expect(body.task.nextRun).toBe(next?.toISOString());
  expect((await get(`?id=${id}`)).body).toEqual({ task: body.task, runs: [] });
  expect((await get(`?agentId=${agentId}`)).body).toEqual({ tasks: [body.task], count: 1 });
  expect((await get('?agentId=another')).body).toEqual({ tasks: [], count: 0 });
  const paused = await put({ id, enabled: false });
  expect(paused.body.task).toMatchObject({ status: 'paused', nextRun: null });
  const removed = await platform.web(ada, 'DELETE', `${PATH}?id=${id}`);
  expect([removed.status, removed.body]).toEqual([200, { success: true }]);
  expect((await get(`?id=${id}`)).status).toBe(404);
});

test('pages through tasks', async () => {
  const ids: unknown[] = [];
  for (let count = 0; count < 3; count++) ids.push((await post()).body.task.id);
  const first = await get('?limit=2');
  expect(first.body.count).toBe(2);
  const [, link] = /<([^>]+)>/.exec(first.headers.get('link') ?? '') ?? [];
  const second = await platform.web(ada, 'GET', link ?? '');
  const found = [...first.body.tasks, ...second.body.tasks].map(({ id }) => id);
  expect(found).toEqual(ids);
});

test.each([
  [{ schedule: '* * * * *' }, 'schedule'],
  [{ schedule: '' }, 'schedule'],
  [{ schedule: 5 }, 'schedule'],
  [{ timezone: 'Mars/Olympus' }, 'timezone'],
  [{ name: '' }, 'name'],
  [{ name: 'x'.repeat(101) }, 'name'],
  [{ message: '' }, 'message'],
  [{ message: 'x'.repeat(16_001) }, 'message'],
  [{ enabled: 'yes' }, 'enabled'],
  [{ agentId: undefined }, 'agentId'],
])('refuses invalid input, and names the field (%#)', async (more, field) => {
  const { body, status } = await post(more);
  expect([status, body.error]).toEqual([400, expect.stringContaining(field)]);
  expect((await get('')).body.count).toBe(0);
});

test('runs a task at once, and shows the answer of the agent', async () => {
  const { id } = (await post()).body.task;
  expect((await put({ id, run: true })).body.task).toMatchObject({
    lastStatus: 'running',
    runs: 1,
  });
  const twice = await put({ id, run: true });
  if (twice.status !== 200) expect(twice.body.code).toBe('TASK_RUNNING');
  await expect
    .poll(async () => (await get(`?id=${id}`)).body.runs.at(-1)?.status, { timeout: 60_000 })
    .toBe('succeeded');
  const { runs } = (await get(`?id=${id}`)).body;
  expect(runs.at(-1)).toMatchObject({ answer: `said: ${TEXT}`, error: null });
  const chat = await platform.web(
    ada,
    'GET',
    `/api/chat?agentId=${agentId}&conversation=task-${id}`,
  );
  expect(chat.body.messages.slice(0, 2)).toMatchObject([
    { role: 'user', content: TEXT },
    { role: 'assistant', content: `said: ${TEXT}` },
  ]);
  const logs = JSON.stringify([platform.logged, workerLog]);
  expect(logs).not.toContain(TEXT);
}, 120_000);

test('fails a run whose agent cannot answer, without the text in the error', async () => {
  platform.provider.behave((_, response) => {
    response.writeHead(500).end();
  });
  const { id } = (await post()).body.task;
  await put({ id, run: true });
  await expect
    .poll(async () => (await get(`?id=${id}`)).body.runs[0]?.status, { timeout: 90_000 })
    .toBe('failed');
  const { runs } = (await get(`?id=${id}`)).body;
  expect(runs[0]).toMatchObject({ answer: null, error: expect.any(String) });
  expect(runs[0].error).not.toContain(TEXT);
}, 120_000);
