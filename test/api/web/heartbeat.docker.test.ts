import { Client, Connection, ScheduleNotFoundError } from '@temporalio/client';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { HeartbeatSchedules } from '../../../temporal/heartbeat-schedules.js';
import { UnavailableError } from '../../../src/lib/errors.js';
import { scheduleHeartbeats } from '../../../worker/schedule-heartbeats.js';
import { heartbeatScheduleId } from '../../../workflows/ids.js';
import { until } from '../../support/until.js';
import { newAddress } from '../../support/http.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';
import { sendJson } from '../../support/provider-stub.js';

const PATH = '/api/heartbeat';
const MINUTE_MS = 60_000;

const isNotFound = (error: unknown) => error instanceof ScheduleNotFoundError;

let platform: TestPlatform;
let ada: TestUser;
beforeAll(async () => {
  platform = await testPlatform();
});
beforeEach(async () => {
  ada = await platform.signUp('network');
  platform.provider.behave();
});
afterAll(() => platform?.close());

const read = async (user = ada) => (await platform.web(user, 'GET', PATH)).body.heartbeat;
const set = (body: unknown, user = ada) => platform.web(user, 'POST', PATH, { body });
/** Creates the schedules for the current settings, as a worker does. */
const follow = ({ db, temporal, log } = platform) =>
  scheduleHeartbeats({ database: db, schedules: new HeartbeatSchedules(temporal.client), log });
const scheduleOf = (user = ada) =>
  platform.temporal.client.schedule.getHandle(heartbeatScheduleId(user.id));
/** Returns the interval of the user's schedule in milliseconds, or undefined without one. */
async function intervalOf(user = ada): Promise<number | undefined> {
  for await (const { scheduleId } of platform.temporal.client.schedule.list()) {
    if (scheduleId !== heartbeatScheduleId(user.id)) continue;
    try {
      const { spec } = await scheduleOf(user).describe();
      return spec.intervals?.[0]?.every;
    } catch (error) {
      // A deleted schedule stays in the list for a moment.
      if (!(error instanceof ScheduleNotFoundError)) throw error;
    }
  }
  return undefined;
}
const becomesEvery = async (ms: number | undefined, user = ada) => {
  await follow();
  await until(async () => (await intervalOf(user)) === ms);
};

describe('heartbeat setting', () => {
  test('the heartbeat is off by default, with an interval of three hours', async () => {
    const { status, body } = await platform.web(ada, 'GET', PATH);
    expect(status).toBe(200);
    expect(body).toEqual({
      heartbeat: { frequency: '3h', enabled: false, lastHeartbeat: null, nextHeartbeat: null },
      message: 'The heartbeat is off',
    });
    expect(await intervalOf()).toBeUndefined();
  });

  test("limits changes from one address to the backend's rate", async () => {
    const from = newAddress();
    const body = { frequency: '1h' };
    const setFrom = () => platform.web(ada, 'POST', PATH, { body, from });
    const answers: Awaited<ReturnType<typeof setFrom>>[] = [];
    // Fewer concurrent requests than connections to the database, so that none has to wait for one.
    for (let batch = 0; batch < 11; batch++) {
      answers.push(...(await Promise.all(Array.from({ length: 11 }, setFrom))));
    }
    const refused = answers.filter(({ status }) => status !== 200);
    expect(refused.map(({ status, body: { error } }) => [status, error])).toEqual([
      [429, 'Too many requests, please slow down.'],
    ]);
    const reset = await platform.web(ada, 'DELETE', PATH, { from });
    expect([reset.status, reset.body.error]).toEqual([429, 'Too many requests, please slow down.']);
  });

  test('an enabled heartbeat runs in whole intervals, and the answer agrees with the schedule', async () => {
    const { status, body } = await set({ frequency: '30m', enabled: true });
    expect(status).toBe(200);
    expect(body).toEqual({
      frequency: '30m',
      enabled: true,
      lastUpdated: expect.any(String),
      lastHeartbeat: null,
      nextHeartbeat: expect.any(String),
      message: 'Your running agents get a heartbeat every 30m',
    });
    const wait = Date.parse(body.nextHeartbeat) - Date.parse(body.lastUpdated);
    expect(wait).toBeGreaterThan(29 * MINUTE_MS);
    expect(wait).toBeLessThanOrEqual(30 * MINUTE_MS);
    const { lastUpdated: _, message: __, ...shown } = body;
    expect(await read()).toEqual(shown);
    await follow();
    const next = await until(async () => (await scheduleOf().describe()).info.nextActionTimes[0]);
    expect(next.toISOString()).toBe(body.nextHeartbeat);
  });

  test('a change keeps the fields that it leaves out', async () => {
    await set({ frequency: '2d' });
    expect(await read()).toMatchObject({ frequency: '2d', enabled: false, nextHeartbeat: null });
    await set({ enabled: true });
    expect(await read()).toMatchObject({ frequency: '2d', enabled: true });
    await becomesEvery(2 * 24 * 60 * MINUTE_MS);
    await set({ frequency: '5m' });
    expect(await read()).toMatchObject({ frequency: '5m', enabled: true });
    await follow();
    await until(async () => {
      const { spec } = await scheduleOf().describe();
      return spec.intervals?.[0]?.every === 5 * MINUTE_MS;
    });
    await set({});
    expect(await read()).toMatchObject({ frequency: '5m', enabled: true });
  });

  test('deleting the setting restores the defaults and may be repeated', async () => {
    await set({ frequency: '1h', enabled: true });
    await becomesEvery(60 * MINUTE_MS);
    for (let time = 0; time < 2; time++) {
      const { status, body } = await platform.web(ada, 'DELETE', PATH);
      expect([status, body]).toEqual([200, { success: true, message: 'The heartbeat is off' }]);
    }
    expect(await read()).toMatchObject({ frequency: '3h', enabled: false, nextHeartbeat: null });
    await becomesEvery(undefined);
  });

  test("a change does not affect another user's heartbeat", async () => {
    const bob = await platform.signUp();
    await set({ frequency: '1h', enabled: true });
    const before = await read();
    await set({ frequency: '5m', enabled: true }, bob);
    await platform.web(bob, 'DELETE', PATH);
    expect(await read()).toEqual(before);
    await becomesEvery(60 * MINUTE_MS);
  });

  test('one of several concurrent changes wins, and the schedule agrees with it', async () => {
    const changes = ['5m', '6m', '7m', '8m'].map((frequency) => set({ frequency, enabled: true }));
    const statuses = (await Promise.all(changes)).map(({ status }) => status);
    expect(statuses).toEqual([200, 200, 200, 200]);
    const { frequency, nextHeartbeat } = await read();
    await becomesEvery(parseInt(frequency) * MINUTE_MS);
    const { info } = await scheduleOf().describe();
    expect(info.nextActionTimes[0]?.toISOString()).toBe(nextHeartbeat);
  });

  test.each([
    [{ frequency: '4m' }, 'frequency must be like 30m, 3h or 1d, from 5m to 7d'],
    [{ frequency: '8d' }, 'frequency must be like 30m, 3h or 1d, from 5m to 7d'],
    [{ frequency: '1.5h' }, 'frequency must be like 30m, 3h or 1d, from 5m to 7d'],
    [{ frequency: '3 hours' }, 'frequency must be like 30m, 3h or 1d, from 5m to 7d'],
    [{ frequency: '03h' }, 'frequency must be like 30m, 3h or 1d, from 5m to 7d'],
    [{ frequency: '' }, 'frequency must be like 30m, 3h or 1d, from 5m to 7d'],
    [{ frequency: 180 }, 'frequency must be text'],
    [{ enabled: 'yes' }, 'enabled must be true or false'],
  ])('refuses an invalid setting (%#)', async (body, error) => {
    const refused = await set(body);
    expect([refused.status, refused.body.error]).toEqual([400, error]);
    expect(await read()).toMatchObject({ frequency: '3h', enabled: false });
  });

  test('the heartbeat setting requires a session', async () => {
    for (const method of ['GET', 'POST', 'DELETE']) {
      const body = method === 'POST' ? {} : undefined;
      expect((await platform.web(undefined, method, PATH, { body })).status).toBe(401);
    }
  });
});

describe('heartbeat run', () => {
  const messages = async (agentId: string) => {
    const path = `/api/chat?agentId=${agentId}&conversation=heartbeat`;
    return (await platform.web(ada, 'GET', path)).body.messages;
  };
  const beatEnds = (done: number) => {
    let triggered = Date.now();
    return until(async () => {
      const { recentActions } = (await scheduleOf().describe()).info;
      // A busy machine may miss a trigger, so it is repeated.
      if (recentActions.length < done && Date.now() - triggered > 15_000) {
        triggered = Date.now();
        await scheduleOf().trigger();
      }
      const ends = recentActions.map(({ action }) =>
        platform.temporal.client.workflow.getHandle(action.workflow.workflowId).result(),
      );
      return ends.length >= done && (await Promise.all(ends)).at(-1);
    });
  };

  test('sends one message to each running agent and stores both sides', async () => {
    const agentId = await platform.runningAgent(ada);
    const stopped = await platform.runningAgent(ada);
    await platform.backend(ada, 'POST', `/api/agents/${stopped}/stop?wait=60`);
    await set({ frequency: '1d', enabled: true });
    await follow();
    await scheduleOf().trigger();
    expect(await beatEnds(1)).toEqual({ answered: 1, skipped: 0, failed: 0 });
    const said = await messages(agentId);
    expect(said).toMatchObject([
      { role: 'user', content: expect.stringMatching(/^Heartbeat: /), status: 'complete' },
      { role: 'assistant', content: expect.stringMatching(/^said: /), status: 'complete' },
    ]);
    expect(await messages(stopped)).toEqual([]);
    const { lastHeartbeat } = await read();
    expect(Date.parse(lastHeartbeat)).toBeLessThanOrEqual(Date.parse(said[0].createdAt));
  });

  test('does not repeat a heartbeat without an answer', async () => {
    const agentId = await platform.runningAgent(ada);
    const asked = platform.provider.requests.length;
    platform.provider.behave((_request, response) => sendJson(response, 500, {}));
    await set({ enabled: true });
    await follow();
    await scheduleOf().trigger();
    expect(await beatEnds(1)).toEqual({ answered: 0, skipped: 0, failed: 1 });
    // The default model and its fallback, once each.
    const models = platform.provider.requests.slice(asked).map(({ body }) => body.model);
    expect(models).toEqual(['gpt-6.1-sol', 'gpt-6-luna']);
    expect(await messages(agentId)).toMatchObject([
      { role: 'user', status: 'complete' },
      { role: 'assistant', content: '', status: 'failed' },
    ]);
  });

  test('a schedule older than the setting sends no messages', async () => {
    const agentId = await platform.runningAgent(ada);
    await set({ enabled: true });
    await follow();
    await set({ enabled: false });
    await scheduleOf().trigger();
    expect(await beatEnds(1)).toEqual({ answered: 0, skipped: 0, failed: 0 });
    expect(await messages(agentId)).toEqual([]);
    expect((await read()).lastHeartbeat).toBeNull();
  });
});

describe('while Temporal is unreachable', () => {
  let cutOff: TestPlatform;
  beforeAll(async () => {
    cutOff = await testPlatform({ workers: false, dead: ['temporal'] });
  });
  afterAll(() => cutOff?.close());

  test('a setting is accepted, and its schedule follows when Temporal is back', async () => {
    const user = await cutOff.signUp();
    const body = { frequency: '1h', enabled: true };
    expect((await cutOff.web(user, 'POST', PATH, { body })).status).toBe(200);
    expect((await cutOff.web(user, 'GET', PATH)).body.heartbeat).toMatchObject(body);

    const { client } = cutOff.temporal;
    const schedule = client.schedule.getHandle(heartbeatScheduleId(user.id));
    const nowhere = new Client({ connection: Connection.lazy({ address: '127.0.0.1:1' }) });
    const schedules = new HeartbeatSchedules(nowhere);
    const checking = { database: cutOff.db, schedules, log: cutOff.log };
    await expect(scheduleHeartbeats(checking)).rejects.toThrow(UnavailableError);
    await expect(schedule.describe()).rejects.toThrow(ScheduleNotFoundError);
    await follow(cutOff);
    expect((await schedule.describe()).spec.intervals).toMatchObject([{ every: 60 * MINUTE_MS }]);

    expect((await cutOff.web(user, 'DELETE', PATH)).status).toBe(200);
    await follow(cutOff);
    await until(() => schedule.describe().then(() => false, isNotFound));
  });
});
