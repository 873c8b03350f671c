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
/** By what each is. */
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
    // A configuration that is still being applied lets nothing else in.
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

/** Names of the secrets that stand in a text. */
const leakedIn = (text: string) =>
  Object.entries(secrets).flatMap(([name, secret]) => (text.includes(secret) ? [name] : []));

test('the secrets that this looks for are there', () => {
  expect(Object.values(secrets).every((secret) => secret.length >= 16)).toBe(true);
});

test("an agent's tokens die with it", () => {
  expect(aiStatusAfterwards).toEqual([401, 401]);
});

test('no secret is in the history of a workflow', async () => {
  await until(async () => {
    const { runs, texts } = await textsOfHistories(platform.temporal.client);
    expect(leakedIn(texts.join('\n'))).toEqual([]);
    // The list is a moment behind.
    return runs >= 2 && texts.some((text) => text.includes(agentId));
  });
});

test('no secret is in the log of a listener or a worker', () => {
  expect(platform.logged.length).toBeGreaterThan(10);
  expect(leakedIn(platform.logged.join('\n'))).toEqual([]);
  expect(leakedIn(workerLog.join('\n'))).toEqual([]);
});

test('no secret is in the audit log, which names what was done', async () => {
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

test('no secret is in the database in the clear', async () => {
  const rows: unknown[] = [];
  for (const { name } of TABLES) {
    if (name === 'audit_log') continue;
    rows.push(await platform.db.asPlatform().query(`SELECT to_jsonb(t) FROM ${name} t`));
  }
  const stored = JSON.stringify(rows);
  expect(stored).toContain(ada.email);
  expect(leakedIn(stored)).toEqual([]);
});
