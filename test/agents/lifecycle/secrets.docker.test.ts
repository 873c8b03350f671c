// @module-tag attack
import { TABLES } from '../../../src/platform/database/models.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readAgentTokens } from '../../../src/agents/credentials/agent-secrets.js';
import { until } from '../../support/until.js';
import { textsOfHistories } from '../../support/histories.js';
import { call } from '../../support/http.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';
import { workerLog } from '../../support/temporal.js';

let platform: TestPlatform;
let ada: TestUser;
let agentId: string;
/** The secrets to search for, by name. */
let secrets: Record<string, string>;
let aiStatusAfterwards: number[];

beforeAll(async () => {
  platform = await testPlatform();
  ada = await platform.signUp('network');
  agentId = await platform.runningAgent(ada);
  const tokens = await readAgentTokens(platform.db.asPlatform(), platform.secrets, agentId);
  secrets = {
    'first token of the agent': tokens[0] ?? '',
    'second token of the agent': tokens[1] ?? '',
    password: ada.password,
    session: ada.cookie.split('=')[1] ?? '',
    'internal key': platform.internalKey,
    'encryption key': platform.settings.secrets.keys[0].key.toString('base64'),
    "provider's key": platform.provider.apiKey,
  };
  const at = `/api/agents/${agentId}`;
  for (const [method, path, body] of [
    ['POST', '/api/chat', { agentId, message: 'hello' }],
    ['PUT', at, { config: { note: 'new' } }],
    ['POST', `${at}/start?wait=60`, undefined],
    ['POST', `${at}/stop?wait=60`, undefined],
    ['POST', `${at}/start?wait=60`, undefined],
    ['POST', '/api/chat', { agentId: 'nobody', message: 'hello' }],
  ] as const) {
    // Retries while the previous configuration is still being applied.
    await until(async () => {
      const { status } = await platform.web(ada, method, path, { body });
      return status !== 409;
    });
  }
  for (const path of [`${at}/token`, `${at}/stats`, `/api/logs/${agentId}/history`]) {
    await platform.backend(ada, 'GET', path);
  }
  await platform.web(undefined, 'POST', '/api/auth/login', {
    body: { email: ada.email, password: `${ada.password}, but wrong` },
  });
  await platform.web(ada, 'DELETE', at);
  await until(async () => (await platform.resourcesOf(agentId)).length === 0);
  await until(async () => {
    const rows = await platform.db.asPlatform().transaction((db) => db.AgentSecret.count());
    return rows === 0;
  });
  const answers = await Promise.all(
    tokens.map((token) =>
      call(platform.agentsUrl, 'GET', '/v1/models', {
        headers: { authorization: `Bearer ${token}` },
      }),
    ),
  );
  aiStatusAfterwards = answers.map(({ status }) => status);
});
afterAll(() => platform?.close());

/** Returns the names of the secrets that a text contains. */
const leakedIn = (text: string) =>
  Object.entries(secrets).flatMap(([name, secret]) => (text.includes(secret) ? [name] : []));

test('control: every secret to search for is set', () => {
  expect(Object.values(secrets).every((secret) => secret.length >= 16)).toBe(true);
});

test("an agent's tokens are invalid after its removal", () => {
  expect(aiStatusAfterwards).toEqual([401, 401]);
});

test('no workflow history contains a secret', async () => {
  await until(async () => {
    const { runs, texts } = await textsOfHistories(platform.temporal.client);
    expect(leakedIn(texts.join('\n'))).toEqual([]);
    // Temporal's list of workflows lags slightly.
    return runs >= 2 && texts.some((text) => text.includes(agentId));
  });
});

test('no log of a listener or worker contains a secret', () => {
  expect(platform.logged.length).toBeGreaterThan(10);
  expect(leakedIn(platform.logged.join('\n'))).toEqual([]);
  expect(leakedIn(workerLog.join('\n'))).toEqual([]);
});

test('the audit log records the actions and contains no secret', async () => {
  const entries = await platform.db
    .asPlatform()
    .query<{ action: string; subject: string; actor: string }>(
      'SELECT * FROM audit_log ORDER BY id',
    );
  expect(leakedIn(JSON.stringify(entries))).toEqual([]);
  expect(entries.map(({ action }) => action)).toEqual([
    'session.create',
    'subscription.grant',
    'agent.create',
    'agent.configure',
    'agent.start',
    'agent.stop',
    'agent.start',
    'agent.token.read',
    'agent.delete',
  ]);
  const ofAgent = entries.slice(2);
  expect(ofAgent.every(({ subject, actor }) => subject === agentId && actor === ada.id)).toBe(true);
});

test('the database contains no secret in the clear', async () => {
  const rows: unknown[] = [];
  for (const { name } of TABLES) {
    if (name === 'audit_log') continue;
    rows.push(await platform.db.asPlatform().query(`SELECT to_jsonb(t) FROM ${name} t`));
  }
  const stored = JSON.stringify(rows);
  expect(stored).toContain(ada.email);
  expect(leakedIn(stored)).toEqual([]);
});
