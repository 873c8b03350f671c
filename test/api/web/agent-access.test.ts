import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createWeb } from '../../../api/web/web.js';
import { isOwnerTicket } from '../../../src/agents/address/owner-ticket.js';
import {
  createAgentSecrets,
  readGatewayToken,
} from '../../../src/agents/credentials/agent-secrets.js';
import { queryRows } from '../../platform/database/catalog.js';
import { call } from '../../support/http.js';
import { webAlone, type WebAlone } from '../../support/web-alone.js';

let web: WebAlone;
let ada: { readonly id: string; readonly cookie: string };
let agentId: string;

beforeAll(async () => {
  web = await webAlone();
});
afterAll(() => web?.close());
beforeEach(async () => {
  ada = await signUp();
  agentId = await agentOf(ada.id);
});

async function signUp() {
  const body = { email: `${randomUUID()}@example.com`, password: 'of the test', name: 'Ada' };
  await call(web.url, 'POST', '/api/register', { body });
  const { body: answer, headers } = await call(web.url, 'POST', '/api/auth/login', { body });
  return { id: String(answer.user.id), cookie: headers.get('set-cookie')?.split(';', 1)[0] ?? '' };
}

async function agentOf(userId: string): Promise<string> {
  const id = randomUUID();
  const names = { id, userId, name: `agent <${id}>`, subdomain: `a-${id.slice(0, 8)}` };
  const kind = { plan: 'solo', model: 'gpt-4', aiProvider: 'openai', status: 'active' } as const;
  await web.database.db.asUser(userId).transaction(async (db) => {
    await db.Agent.create({ ...names, ...kind });
    await createAgentSecrets(db, web.dependencies.secrets, { id, userId });
  });
  return id;
}

const ask = (method: string, path: string, cookie = ada.cookie) =>
  call(web.url, method, path, { headers: { cookie } });

const tokenOf = () =>
  readGatewayToken(web.database.db.asUser(ada.id), web.dependencies.secrets, agentId);

const age = () =>
  queryRows(
    web.database.ownerUrl,
    `UPDATE sessions SET created_at = now() - interval '1 day' WHERE user_id = '${ada.id}'`,
  );

test("shows an agent's gateway token to its owner, and audits it", async () => {
  const answer = await ask('GET', `/api/agents/${agentId}/token`);
  expect([answer.status, answer.body]).toEqual([
    200,
    {
      id: agentId,
      token: await tokenOf(),
      websocketUrl: `ws://a-${agentId.slice(0, 8)}.localhost:3000`,
    },
  ]);
  expect(answer.headers.get('cache-control')).toBe('no-store');
  const audited = `SELECT action, user_id FROM audit_log WHERE subject = '${agentId}'`;
  expect(await queryRows(web.database.ownerUrl, audited)).toEqual([
    { action: 'agent.token.read', user_id: ada.id },
  ]);
});

test('makes a link that opens the agent with a ticket and, in the fragment, the token', async () => {
  const answer = await ask('POST', `/api/agents/${agentId}/open`);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('cache-control')).toBe('no-store');
  const { hash, origin, pathname, searchParams } = new URL(answer.body.url);
  expect([origin, pathname]).toEqual([`http://a-${agentId.slice(0, 8)}.localhost:3000`, '/-/open']);
  const ticket = searchParams.get('ticket') ?? '';
  expect(isOwnerTicket(web.dependencies.secrets, 'open', agentId, ticket)).toBe(true);
  expect(hash).toBe(`#token=${await tokenOf()}`);
});

test('returns no link if agents have no address', async () => {
  const { dependencies } = web;
  const { http } = dependencies.settings;
  const settings = { ...dependencies.settings, http: { ...http, agentsAt: undefined } };
  const bare = await createWeb({ ...dependencies, settings }).listen('127.0.0.1', 0);
  const { cookie } = ada;
  const at = (path: string, method = 'GET') =>
    call(bare.url, method, path, { headers: { cookie } });
  expect((await at(`/api/agents/${agentId}/open`, 'POST')).status).toBe(503);
  const { body } = await at(`/api/agents/${agentId}`);
  expect([body.agent.url, body.agent.websocketUrl]).toEqual([null, null]);
  expect((await at('/dashboard')).text).not.toContain(`/api/agents/${agentId}/open`);
  await bare.close();
});

test('lists agents on the dashboard, with a button that opens those that run', async () => {
  const { text } = await ask('GET', '/dashboard');
  expect(text).toContain(`<strong>agent &#60;${agentId}&#62;</strong>: running; $0.00`);
  expect(text).toContain(`action="/api/agents/${agentId}/open"`);
  await queryRows(
    web.database.ownerUrl,
    `UPDATE agents SET status = 'stopped' WHERE id = '${agentId}'`,
  );
  expect((await ask('GET', '/dashboard')).text).not.toContain(`/api/agents/${agentId}/open`);
});

test('lists the cost of this month beside each agent', async () => {
  const columns =
    'day, user_id, agent_id, provider, model, input_tokens, output_tokens, cost_usd, calls';
  const used = `'${ada.id}', '${agentId}', 'openai', 'gpt-4', 1, 1`;
  await queryRows(
    web.database.ownerUrl,
    `INSERT INTO usage_daily (${columns}) VALUES
       ((now() AT TIME ZONE 'UTC')::date, ${used}, 0.42, 1),
       ((now() AT TIME ZONE 'UTC')::date - 40, ${used}, 7, 1)`,
  );
  expect((await ask('GET', '/dashboard')).text).toMatch(/running; \$0\.42\s+this\s+month/);
});

test('confirms the host names of agents to a proxy', async () => {
  const statusOf = async (domain: string) =>
    (await ask('GET', `/api/agents/address?domain=${domain}`, '')).status;
  const subdomain = `a-${agentId.slice(0, 8)}`;
  expect(await statusOf(`${subdomain}.localhost`)).toBe(200);
  for (const domain of [subdomain, `x.${subdomain}.localhost`, 'nobody.localhost', 'localhost']) {
    expect(await statusOf(domain)).toBe(404);
  }
});

describe('access to an agent', { tags: 'attack' }, () => {
  const paths = () =>
    [
      ['GET', `/api/agents/${agentId}/token`],
      ['POST', `/api/agents/${agentId}/open`],
    ] as const;

  test('access to an agent needs a recent sign-in', async () => {
    await age();
    for (const [method, path] of paths()) {
      const { body, status } = await ask(method, path);
      expect([status, body.code]).toEqual([403, 'REAUTHENTICATION_REQUIRED']);
    }
  });

  test('access to an agent is refused to other users, to clients without a session and to API keys', async () => {
    const bob = await signUp();
    const made = await call(web.url, 'POST', '/api/keys', {
      headers: { cookie: ada.cookie },
      body: { name: 'of ada' },
    });
    for (const [method, path] of paths()) {
      expect((await ask(method, path, bob.cookie)).status).toBe(404);
      expect((await ask(method, path, '')).status).toBe(401);
      const headers = { authorization: `Bearer ${made.body.key}` };
      expect((await call(web.url, method, path, { headers })).status).toBe(403);
    }
  });

  test("access to an agent is refused to a page of an agent, which lacks the session's CSRF token", async () => {
    const headers = { cookie: ada.cookie, 'sec-fetch-site': 'same-site' };
    const answer = await call(web.url, 'POST', `/api/agents/${agentId}/open`, { headers });
    expect(answer.status).toBe(403);
  });
});
