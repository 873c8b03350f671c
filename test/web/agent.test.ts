import { randomUUID } from 'node:crypto';
import { QueryTypes } from 'sequelize';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MAX_CREDENTIALS, sealCredential } from '../../src/agents/agent-credentials.js';
import { until } from '../support/docker.js';
import { textsOfHistories } from '../support/histories.js';
import { allEvents, send, type CallOptions } from '../support/http.js';
import { testPlatform, type TestPlatform, type TestUser } from '../support/platform.js';
import { workerLog } from '../support/temporal.js';

let platform: TestPlatform;
let ada: TestUser;
let agentId: string;

beforeAll(async () => {
  platform = await testPlatform({ env: { WATCHDOG_CHECK_INTERVAL: '60m' } });
  ada = await platform.signUp('network');
  agentId = await platform.runningAgent(ada);
});
afterAll(() => platform?.close());

type Body = Readonly<Record<string, unknown>>;

const act = (action: string, body: Body = {}, options: CallOptions = {}) =>
  platform.web(ada, 'POST', '/api/agent?wait=60', {
    ...options,
    body: { action, agentId, ...body },
  });
const setCredential = (name: string, value: string | null, body: Body = {}) =>
  act('set-credential', { name, value, ...body });
const look = async (id = agentId) =>
  (await platform.web(ada, 'GET', `/api/agent?agentId=${id}`)).body;

/** What the container was given, by the engine's own account. */
async function environment(id = agentId): Promise<Record<string, string>> {
  const { Config } = await platform.docker.getContainer(`agent-${id}`).inspect();
  return Object.fromEntries(Config.Env.map((pair) => pair.split(/=(.*)/s).slice(0, 2)));
}

async function wholeDatabase(): Promise<string> {
  const tables = Object.values(platform.db.models).map(({ tableName }) => tableName);
  return platform.db.asPlatform().transaction(async (transaction) => {
    const all: unknown[] = [];
    for (const table of tables) {
      const sql = `SELECT to_jsonb(t) FROM ${table} t`;
      all.push(await platform.db.sequelize.query(sql, { type: QueryTypes.SELECT, transaction }));
    }
    return JSON.stringify(all);
  });
}

const credentialsOf = (id: string) =>
  platform.db.asPlatform().transaction((transaction) =>
    platform.db.models.AgentCredential.findAll({
      where: { agentId: id },
      raw: true,
      transaction,
    }),
  );

const succeeded = {
  id: expect.any(String),
  operation: 'configure',
  operationId: expect.any(String),
  status: 'succeeded',
  error: null,
};

describe('an action', () => {
  test('is one of four', async () => {
    for (const body of [{ action: 'dance', agentId }, { agentId }, {}]) {
      const refused = await platform.web(ada, 'POST', '/api/agent', { body });
      expect([refused.status, refused.body.error]).toEqual([
        400,
        'action must be one of chat, create-session, update-skill, set-credential',
      ]);
    }
  });

  test.each([
    ['chat', {}, 'message is required'],
    ['chat', { message: 'hi', agentId: undefined }, 'agentId is required'],
    ['update-skill', { enabled: true }, 'skill is required'],
    ['update-skill', { skill: 'weather' }, 'enabled or config is required'],
    ['update-skill', { skill: '__proto__', enabled: true }, 'skill must begin with'],
    ['update-skill', { skill: 'a/../b', enabled: true }, 'skill must begin with'],
    ['update-skill', { skill: 'weather', config: [] }, 'config must be an object'],
    ['update-skill', { skill: 'x', config: { x: 'x'.repeat(65_536) } }, 'at most 64 KiB'],
    ['set-credential', { name: 'TOKEN' }, 'value is required'],
    ['set-credential', { name: 'TOKEN', value: '' }, 'value is required'],
    ['set-credential', { name: 'TOKEN', value: 'é'.repeat(4_097) }, 'value must be at most 8 KiB'],
    ['set-credential', { name: 'TOKEN', value: 'a\0b' }, 'cannot be stored'],
    ['set-credential', { name: 'token', value: 'x' }, 'name must begin with a capital letter'],
    ['set-credential', { name: 'A'.repeat(65), value: 'x' }, 'at most 64 capital letters'],
    ['set-credential', { name: 'A=B', value: 'x' }, 'name must begin with a capital letter'],
  ])('%s without what it needs is a 400 (%#)', async (action, body, error) => {
    const refused = await act(action, body);
    expect(refused.status).toBe(400);
    expect(refused.body.error).toContain(error);
  });

  test.each([
    'PATH',
    'HOME',
    'NODE_OPTIONS',
    'LD_PRELOAD',
    'OPENCLAW_GATEWAY_TOKEN',
    'HTTPS_PROXY',
  ])('does not set %s', async (name) => {
    const refused = await setCredential(name, 'x');
    expect([refused.status, refused.body.error]).toEqual([
      400,
      'name is reserved for the agent runtime',
    ]);
  });

  test("with another's agent, or none, is a 404, and without a session a 401", async () => {
    const bob = await platform.signUp('network');
    const actions = [
      { action: 'chat', message: 'hi' },
      { action: 'create-session' },
      { action: 'update-skill', skill: 'weather', enabled: false },
      { action: 'set-credential', name: 'TOKEN', value: 'x' },
    ];
    for (const body of actions) {
      const asked = { ...body, agentId };
      const missing = { ...body, agentId: randomUUID() };
      const answers = [
        await platform.web(bob, 'POST', '/api/agent', { body: asked }),
        await platform.web(bob, 'POST', '/api/agent', { body: missing }),
      ];
      for (const { status, body: told } of answers) {
        expect([status, told.error]).toEqual([404, 'Agent not found']);
      }
      const nobody = await platform.web(undefined, 'POST', '/api/agent', { body: asked });
      expect(nobody.status).toBe(401);
    }
    expect((await platform.web(bob, 'GET', `/api/agent?agentId=${agentId}`)).status).toBe(404);
  });

  test('counts with the questions of /api/chat', async () => {
    const asked = await platform.web(ada, 'POST', '/api/agent', { body: {} });
    expect(asked.headers.get('ratelimit-limit')).toBe('60');
  });
});

describe('a conversation', () => {
  test('that was created is gone on with, and its key gives it again', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    const made = await act('create-session', {}, { headers });
    expect(made.status).toBe(201);
    expect(made.body).toEqual({
      agentId,
      conversation: expect.any(String),
      createdAt: expect.stringMatching(/Z$/),
    });
    expect((await act('create-session', {}, { headers })).body).toEqual(made.body);
    expect((await act('create-session')).body.conversation).not.toBe(made.body.conversation);

    const { conversation } = made.body;
    const answer = await act('chat', { message: 'hello', conversation });
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({
      agentId,
      conversation,
      message: { role: 'assistant', content: 'said: hello' },
    });
    const path = `/api/chat?agentId=${agentId}&conversation=${conversation}`;
    expect((await platform.web(ada, 'GET', path)).body.messages).toHaveLength(2);
  });

  test('is streamed when that is asked for', async () => {
    const response = await send(platform.webUrl, 'POST', '/api/agent', {
      body: { action: 'chat', agentId, message: 'hello there' },
      headers: { cookie: ada.cookie, accept: 'text/event-stream' },
    });
    const events = await allEvents(response);
    expect(events.at(-1)).toMatchObject({
      event: 'done',
      data: { agentId, message: { content: 'said: hello there' } },
    });
    expect(events[0]?.event).toBe('delta');
  });
});

describe('a skill', () => {
  test("is changed in the agent's own configuration, and the rest of it is kept", async () => {
    const id = await platform.runningAgent(ada, {
      config: {
        note: 'mine',
        runtime: {
          skills: { allowBundled: ['weather'], entries: { weather: { env: { A: 'b' } } } },
        },
      },
    });
    const changed = await act('update-skill', {
      agentId: id,
      skill: 'weather',
      enabled: false,
      config: { unit: 'K' },
    });
    expect([changed.status, changed.body]).toEqual([202, { ...succeeded, id }]);
    expect((await act('update-skill', { agentId: id, skill: 'notes', enabled: true })).status).toBe(
      202,
    );
    const { config } = (await platform.web(ada, 'GET', `/api/agents/${id}/config`)).body;
    expect(config).toEqual({
      note: 'mine',
      runtime: {
        skills: {
          allowBundled: ['weather'],
          entries: {
            weather: { env: { A: 'b' }, enabled: false, config: { unit: 'K' } },
            notes: { enabled: true },
          },
        },
      },
    });
    expect(await look(id)).toEqual({
      agentId: id,
      status: 'running',
      actions: ['chat', 'create-session', 'update-skill', 'set-credential'],
      skills: [
        { name: 'notes', enabled: true },
        { name: 'weather', enabled: false },
      ],
      credentials: [],
    });
  });
});

describe('a credential', () => {
  const first = `first ${randomUUID()}`;
  const second = `second ${randomUUID()}\nof two lines = ünïcödé`;

  test('is in the environment when the operation has ended, is replaced, and taken away', async () => {
    const before = await environment();
    const made = await setCredential('SHOP_TOKEN', first);
    expect([made.status, made.body]).toEqual([202, { ...succeeded, id: agentId }]);
    expect(await environment()).toEqual({ ...before, SHOP_TOKEN: first });
    expect((await look()).credentials).toEqual([
      { name: 'SHOP_TOKEN', updatedAt: expect.stringMatching(/Z$/) },
    ]);
    expect(await wholeDatabase()).not.toContain(first);

    expect((await setCredential('OTHER', 'another one')).status).toBe(202);
    expect((await setCredential('SHOP_TOKEN', second)).body).toMatchObject(succeeded);
    expect(await environment()).toEqual({ ...before, SHOP_TOKEN: second, OTHER: 'another one' });
    expect(await credentialsOf(agentId)).toHaveLength(2);

    expect((await setCredential('OTHER', null)).body).toMatchObject(succeeded);
    expect(await environment()).toEqual({ ...before, SHOP_TOKEN: second });
    expect((await look()).credentials).toMatchObject([{ name: 'SHOP_TOKEN' }]);
    expect(await credentialsOf(agentId)).toHaveLength(1);
    const gone = await setCredential('OTHER', null);
    expect([gone.status, gone.body.error]).toEqual([404, 'Credential not found']);
  });

  test("does not show in the agent's log", async () => {
    const [line] = second.split('\n');
    await platform.tellAgent(agentId, { print: { lines: 1, text: `it is ${line}` } });
    const path = `/api/logs/${agentId}/history?limit=1000`;
    await expect
      .poll(async () => (await platform.backend(ada, 'GET', path)).text, { timeout: 30_000 })
      .toContain('it is [redacted]');
    expect((await platform.backend(ada, 'GET', path)).text).not.toContain(line);
  });

  test('with which the agent does not come up is taken back', async () => {
    const before = await environment();
    const failed = await setCredential('EXIT_AT_START', '3');
    expect(failed.body).toMatchObject({ status: 'failed' });
    expect(failed.body.error).toContain('rolled back');
    expect(await environment()).toEqual(before);
    expect((await look()).status).toBe('running');
    expect(await credentialsOf(agentId)).toMatchObject([{ name: 'SHOP_TOKEN', state: 'present' }]);
  });

  test('that is replaced by one with which the agent does not come up is what it was', async () => {
    const id = await platform.runningAgent(ada);
    await setCredential('START_DELAY_MS', '10', { agentId: id });
    const failed = await setCredential('EXIT_AT_START', '3', { agentId: id });
    expect(failed.body.status).toBe('failed');
    // Not a number of milliseconds that a timer takes, but still a start.
    await setCredential('PRINT_LINES', '1', { agentId: id });
    expect(await environment(id)).toMatchObject({ START_DELAY_MS: '10', PRINT_LINES: '1' });
    expect(await environment(id)).not.toHaveProperty('EXIT_AT_START');
  });

  test('of an agent that is stopped is there from its next start', async () => {
    const id = await platform.runningAgent(ada);
    await platform.web(ada, 'POST', `/api/agents/${id}/stop?wait=60`);
    expect((await look(id)).actions).not.toContain('chat');
    const set = await setCredential('SHOP_TOKEN', first, { agentId: id });
    expect(set.body).toMatchObject(succeeded);
    await platform.web(ada, 'POST', `/api/agents/${id}/start?wait=60`);
    expect(await environment(id)).toMatchObject({ SHOP_TOKEN: first });
  });

  test('that another operation forbids leaves nothing behind', async () => {
    const id = await platform.runningAgent(ada);
    const restart = platform.web(ada, 'POST', `/api/agents/${id}/restart?wait=60`);
    await until(async () => {
      const path = `/api/agents/${id}/operations`;
      const { operations } = (await platform.web(ada, 'GET', path)).body;
      return operations[0].operation === 'restart';
    });
    const refused = await setCredential('SHOP_TOKEN', first, { agentId: id });
    expect((await restart).body.status).toBe('succeeded');
    // Unless the restart was over already.
    if (refused.status === 409) expect(await credentialsOf(id)).toEqual([]);
    else expect(refused.status).toBe(202);
  });

  test('repeated with its Idempotency-Key is set once', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    const body = { name: 'SHOP_TOKEN', value: second };
    const one = await act('set-credential', body, { headers });
    const two = await act('set-credential', body, { headers });
    expect([one.status, two.body]).toEqual([202, one.body]);
    const other = await act('set-credential', { ...body, value: first }, { headers });
    expect(other.status).toBe(422);
  });

  test('is one of fifty at most', async () => {
    const { id: userId } = ada;
    const id = await platform.runningAgent(ada);
    const rows = Array.from({ length: MAX_CREDENTIALS - 1 }, (_, index) => ({
      ...sealCredential(platform.secrets, id, { name: `NUMBER_${index}`, value: 'number' }),
      operationId: randomUUID(),
      agentId: id,
      userId,
      state: 'present' as const,
      updatedAt: new Date(),
    }));
    await platform.db.asUser(userId).transaction(async (transaction) => {
      await platform.db.models.AgentCredential.bulkCreate(rows, { transaction });
    });
    expect((await setCredential('LAST', 'the last', { agentId: id })).status).toBe(202);
    const refused = await setCredential('TOO_MANY', 'one too many', { agentId: id });
    expect([refused.status, refused.body]).toMatchObject([
      409,
      { current: MAX_CREDENTIALS, limit: MAX_CREDENTIALS },
    ]);
    expect((await setCredential('NUMBER_7', 'changed', { agentId: id })).status).toBe(202);
    expect(await environment(id)).toMatchObject({ NUMBER_7: 'changed', LAST: 'the last' });
  });

  test('goes with its agent, and its value was nowhere else', async () => {
    const id = await platform.runningAgent(ada);
    const [before, after] = [`before ${randomUUID()}`, `after ${randomUUID()}`];
    await setCredential('SHOP_TOKEN', before, { agentId: id });
    await setCredential('SHOP_TOKEN', after, { agentId: id });
    expect(await environment(id)).toMatchObject({ SHOP_TOKEN: after });
    await platform.web(ada, 'DELETE', `/api/agents/${id}`);
    await until(async () => (await credentialsOf(id)).length === 0, 60_000);

    const leaked = (text: string) =>
      [before, after, 'first ', 'second '].filter((value) => text.includes(value));
    await until(async () => {
      const { texts } = await textsOfHistories(platform.temporal.client);
      expect(leaked(texts.join('\n'))).toEqual([]);
      // The list is a moment behind.
      return texts.some((text) => text.includes(id));
    }, 30_000);
    const stored = await wholeDatabase();
    expect(leaked(stored)).toEqual([]);
    expect(stored).toContain('"credential": "SHOP_TOKEN"'.replace(': ', ':'));
    expect(leaked(platform.logged.join('\n'))).toEqual([]);
    expect(leaked(workerLog.join('\n'))).toEqual([]);
  });
});
