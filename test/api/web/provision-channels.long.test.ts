// @module-tag attack
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TABLES } from '../../../src/platform/database/models.js';
import { textsOfHistories } from '../../support/histories.js';
import { newAddress } from '../../support/http.js';
import {
  ADMIN_EMAIL,
  testPlatform,
  type TestPlatform,
  type TestUser,
} from '../../support/platform.js';
import { runInContainer } from '../../support/run-in-container.js';
import { workerLog } from '../../support/temporal.js';
import { until } from '../../support/until.js';

let platform: TestPlatform;

beforeAll(async () => {
  platform = await testPlatform({ env: { WATCHDOG_CHECK_INTERVAL: '1s' } });
});
afterAll(() => platform?.close());

const provision = (user: TestUser | undefined, body: object, from = newAddress(), headers = {}) =>
  platform.web(user, 'POST', '/api/provision', { body, from, headers });
const newName = () => `agent ${randomUUID()}`;

const TELEGRAM = '123456:rejected-token-of-telegram';
const SLACK = { botToken: 'xoxb-rotated-of-slack', appToken: 'xapp-right-of-slack' };
const DISCORD = 'right-token-of-discord';

describe('an agent with channels', () => {
  let ada: TestUser;
  let id: string;

  beforeAll(async () => {
    ada = await platform.signUp('network');
    const channels = { telegram: { botToken: TELEGRAM }, slack: SLACK };
    const made = await provision(ada, { name: 'Bot', channels });
    expect([made.status, made.body]).toEqual([
      201,
      {
        success: true,
        agent: {
          id: expect.any(String),
          name: 'Bot',
          status: 'provisioning',
          websocketUrl: expect.stringMatching(/^ws:/),
          model: expect.any(String),
          createdAt: expect.any(String),
          channels: ['telegram', 'slack'],
        },
      },
    ]);
    ({ id } = made.body.agent);
    await platform.becomes(id, 'active');
  });

  const detail = async () => (await platform.web(ada, 'GET', `/api/agents/${id}`)).body.agent;
  const read = async (file: string) =>
    runInContainer(
      platform.docker,
      `agent-${id}`,
      `console.log(require('fs').readFileSync('/home/node/.openclaw/${file}', 'utf8'))`,
    );
  const setCredential = (name: string, value: string | null) =>
    platform.web(ada, 'POST', '/api/agent?wait=60', {
      body: { action: 'set-credential', agentId: id, name, value },
    });

  test('an agent with channels is ready with a rejected token, shows the channel, and is never repaired', async () => {
    const rejected = { name: 'telegram', ok: false, reason: expect.stringContaining('token') };
    const right = { name: 'slack', ok: true, reason: null };
    expect((await detail()).channels).toEqual([right, rejected]);
    // Several checks of the watchdog.
    const seen = (await detail()).observedAt;
    await until(async () => Date.parse((await detail()).observedAt) > Date.parse(seen) + 2_000);
    const states = await platform.db
      .asPlatform()
      .query('SELECT to_state FROM watchdog_transitions WHERE agent_id = $id ORDER BY at, id', {
        id,
      });
    expect(states.map((row) => Object.values(row)[0])).toEqual(['starting', 'running']);
  });

  test('its configuration names variables, and its variables have the tokens', async () => {
    expect(JSON.parse(await read('openclaw.json')).channels).toEqual({
      telegram: { botToken: '${TELEGRAM_BOT_TOKEN}' },
      slack: { botToken: '${SLACK_BOT_TOKEN}', appToken: '${SLACK_APP_TOKEN}' },
    });
    const variables = await read('.env');
    for (const token of [TELEGRAM, ...Object.values(SLACK)]) expect(variables).toContain(token);
    const shown = (await platform.web(ada, 'GET', `/api/agent?agentId=${id}`)).body;
    expect(shown.credentials.map(({ name }: { name: string }) => name)).toEqual([
      'SLACK_APP_TOKEN',
      'SLACK_BOT_TOKEN',
      'TELEGRAM_BOT_TOKEN',
    ]);
  });

  test('a credential rotates a token, adds a channel, and its removal removes the channel', async () => {
    const right = '123456:right-token-of-telegram';
    for (const [name, value] of [
      ['TELEGRAM_BOT_TOKEN', right],
      ['DISCORD_BOT_TOKEN', DISCORD],
      ['SLACK_APP_TOKEN', null],
    ] as const) {
      expect((await setCredential(name, value)).body).toMatchObject({ status: 'succeeded' });
    }
    expect((await detail()).channels).toEqual([
      { name: 'discord', ok: null, reason: expect.stringContaining('only if it fails') },
      { name: 'telegram', ok: true, reason: null },
    ]);
    expect(await read('.env')).toContain(right);
    expect(JSON.parse(await read('openclaw.json')).channels).toEqual({
      telegram: { botToken: '${TELEGRAM_BOT_TOKEN}' },
      discord: { token: '${DISCORD_BOT_TOKEN}' },
    });
  });

  test("shows the channels of the agent's own configuration, also while it is stopped", async () => {
    const config = { runtime: { channels: { irc: { password: 'rejected' } } } };
    const path = `/api/agents/${id}/config`;
    expect((await platform.web(ada, 'PUT', path, { body: { config } })).status).toBe(200);
    await until(async () => (await detail()).channels.length === 3);
    await until(async () => (await detail()).channels[1].ok === false);
    expect((await detail()).channels[1]).toMatchObject({ name: 'irc', ok: false });
    // The change of the configuration may still be in progress.
    await until(async () => {
      const { status } = await platform.web(ada, 'POST', `/api/agents/${id}/stop?wait=60`);
      return status === 202;
    });
    const unknown = { ok: null, reason: 'The agent is not running' };
    expect((await detail()).channels).toEqual(
      ['discord', 'irc', 'telegram'].map((name) => ({ name, ...unknown })),
    );
  });

  test('no answer, log, history, operation or audit record shows a token', async () => {
    const tokens = [TELEGRAM, ...Object.values(SLACK), DISCORD];
    const leaked = (text: string) => tokens.filter((token) => text.includes(token));
    const paths = [`/api/agents/${id}`, `/api/agents/${id}/operations`, `/api/agents/${id}/config`];
    for (const path of [...paths, `/api/agent?agentId=${id}`]) {
      expect(leaked((await platform.web(ada, 'GET', path)).text)).toEqual([]);
    }
    const rows: unknown[] = [];
    for (const { name } of TABLES) {
      rows.push(await platform.db.asPlatform().query(`SELECT to_jsonb(t) FROM ${name} t`));
    }
    expect(leaked(JSON.stringify(rows))).toEqual([]);
    await until(async () => {
      const { texts } = await textsOfHistories(platform.temporal.client);
      expect(leaked(texts.join('\n'))).toEqual([]);
      // Temporal's list of workflows lags slightly.
      return texts.some((text) => text.includes(id));
    });
    expect(leaked(platform.logged.join('\n'))).toEqual([]);
    expect(leaked(workerLog.join('\n'))).toEqual([]);
    const container = await platform.docker.getContainer(`agent-${id}`).inspect();
    expect(leaked(JSON.stringify(container))).toEqual([]);
  });
});

describe('a request for an agent with channels', () => {
  const telegram = { botToken: '1:a' };

  test.each([
    [{}, 400, 'name is required'],
    [{ name: 'x', plan: 'platinum' }, 400, 'plan must be one of label, solo, collective, network'],
    [{ name: 'x', plan: 'collective' }, 402, 'The plan collective needs a subscription'],
    [{ name: 'x', plan: 'free' }, 402, 'A paid plan is required'],
    [
      { name: 'x', channels: { irc: { token: 'x' } } },
      400,
      'channels must be among telegram, discord, slack',
    ],
    [
      { name: 'x', channels: { telegram: { botToken: 'abc' } } },
      400,
      'the token must be <digits>:<text>',
    ],
    [
      { name: 'x', channels: { telegram: { botToken: '12:a b' } } },
      400,
      'the token must be <digits>:<text>',
    ],
    [
      { name: 'x', channels: { slack: { botToken: 'xoxp-1', appToken: 'xapp-1' } } },
      400,
      'the token must be xoxb-<text>',
    ],
    [
      { name: 'x', channels: { slack: { botToken: 'xoxb-1', appToken: 'xoxb-1' } } },
      400,
      'the token must be xapp-<text>',
    ],
    [
      { name: 'x', channels: { slack: { botToken: 'xoxb-1' } } },
      400,
      'channels.slack.appToken is required',
    ],
    [
      { name: 'x', channels: { discord: { token: '' } } },
      400,
      'the token must be text without blanks',
    ],
  ])('refuses %j', async (body, status, error) => {
    const user = await platform.signUp('solo');
    const refused = await provision(user, body);
    expect([refused.status, refused.body.error]).toEqual([status, error]);
    expect((await platform.web(user, 'GET', '/api/agents')).body.count).toBe(0);
  });

  test('requires a session and a plan, except for administrators', async () => {
    expect((await provision(undefined, { name: 'x' })).status).toBe(401);
    const refused = await provision(await platform.signUp(), { name: 'x' });
    expect([refused.status, refused.body.code]).toEqual([402, 'SUBSCRIPTION_REQUIRED']);
    const admin = await platform.signUp(undefined, ADMIN_EMAIL);
    const made = await provision(admin, { name: 'x', channels: { telegram } });
    expect([made.status, made.body.agent.channels]).toEqual([201, ['telegram']]);
  });

  test('uses the subscribed plan, or a lower one', async () => {
    const user = await platform.signUp('collective');
    for (const plan of [undefined, 'label']) {
      const { id } = (await provision(user, { name: newName(), plan })).body.agent;
      const shown = await platform.web(user, 'GET', `/api/agents/${id}`);
      expect(shown.body.agent.plan).toBe(plan ?? 'collective');
    }
  });

  test('an Idempotency-Key makes one agent', async () => {
    const user = await platform.signUp('network');
    const [key, body] = [randomUUID(), { name: newName(), channels: { telegram } }];
    const send = () => provision(user, body, newAddress(), { 'idempotency-key': key });
    const [one, two] = [await send(), await send()];
    expect([two.status, two.body]).toEqual([201, one.body]);
    expect((await platform.web(user, 'GET', '/api/agents')).body.count).toBe(1);
  });

  test('an address has five requests a minute', async () => {
    const from = newAddress();
    const statuses: number[] = [];
    for (let sent = 0; sent < 6; sent++) {
      statuses.push((await provision(undefined, { name: 'x' }, from)).status);
    }
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429]);
  });
});
