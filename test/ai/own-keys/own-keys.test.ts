// @module-tag attack
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createContainersListener } from '../../../api/containers/containers.js';
import type { Listening } from '../../../api/http/server.js';
import { grantPlan } from '../../../src/accounts/accounts/subscriptions.js';
import { createAgentBus } from '../../../src/agent-ai-services.js';
import { AgentCallerLookup } from '../../../src/agents/credentials/agent-caller-lookup.js';
import {
  createAgentSecrets,
  readAgentTokens,
} from '../../../src/agents/credentials/agent-secrets.js';
import { Chats } from '../../../src/agents/chat/chats.js';
import type { ProviderName } from '../../../src/ai/completion/provider-names.js';
import { enableOwnKey } from '../../../src/ai/own-keys/own-key-store.js';
import { ownKeyContext } from '../../../src/ai/own-keys/own-keys.js';
import { Router } from '../../../src/ai/routing/route.js';
import { UnauthorizedError } from '../../../src/lib/errors.js';
import type { Plan } from '../../../src/types/plans.js';
import { walletSite, type Person, type WalletSite } from '../../money/wallets/support.js';
import { queryRows } from '../../platform/database/catalog.js';
import {
  fails,
  keyIn,
  keyOfProvider,
  startAiProviders,
  type AiProviders,
} from '../../support/ai-providers.js';
import { call } from '../../support/http.js';
import { shippedModels } from '../../support/models.js';

const BY = { actor: 'operator', requestId: 'a-request' };

/** A model in every plan, at OpenAI and at OpenRouter. */
const LUNA = 'openai/gpt-6-luna';
const ELSEWHERE = 'openrouter/openai/gpt-6-luna';

let providers: AiProviders;
let site: WalletSite;
let agents: Listening;

/** A user with an API key. */
interface Caller extends Person {
  readonly key: string;
}

beforeAll(async () => {
  providers = await startAiProviders();
  site = await walletSite({
    ...providers.env('openai', 'openrouter'),
    GEMINI_BASE_URL: 'http://127.0.0.1:1',
  });
  const { dependencies } = site;
  const { ai, database, log, settings } = dependencies;
  const agentCallers = new AgentCallerLookup(database, settings.accounts);
  const parts = { ...createAgentBus(dependencies), settings, database, agentCallers, ai, log };
  agents = await createContainersListener(parts).listen('127.0.0.1', 0);
});
afterEach(() => providers.behave());
afterAll(async () => {
  await agents?.close();
  await site?.close();
  await providers?.close();
});

const owner = (sql: string) => queryRows<Record<string, unknown>>(site.database.ownerUrl, sql);

async function caller(plan: Plan = 'solo'): Promise<Caller> {
  const person = await site.person();
  await grantPlan(site.database.db, person.id, plan, BY);
  const { key } = (await site.web(person, 'POST', '/api/keys', { body: { name: 'ci' } })).body;
  return { ...person, key };
}

const ownKeyOf = ({ id }: Person, provider = 'openai') => `own-${provider}-key-of-${id}`;

const billing = (user: Person, body: object) => site.web(user, 'POST', '/api/billing', { body });

/** Stores an own key that the provider accepts. */
async function enable(user: Person, provider: ProviderName = 'openai') {
  const apiKey = ownKeyOf(user, provider);
  providers.accepted.add(apiKey);
  const { body, status } = await billing(user, { action: 'enable-byok', provider, apiKey });
  expect([status, body.byok?.enabled]).toEqual([200, true]);
}

/** Stores an own key without a request to the provider. */
async function store(user: Person, provider: ProviderName) {
  const context = ownKeyContext(user.id, provider);
  const sealed = site.dependencies.secrets.seal(ownKeyOf(user, provider), context);
  await owner(
    `INSERT INTO provider_keys (user_id, provider, sealed_key, created_at)
     VALUES ('${user.id}', '${provider}', '${sealed}', now())`,
  );
}

const complete = (bearer: string, model: string, more: object = {}, url?: string) => {
  const options = {
    body: { model, messages: [{ role: 'user', content: 'hello' }], ...more },
    headers: { authorization: `Bearer ${bearer}` },
  };
  const path = '/v1/chat/completions';
  return url === undefined
    ? site.backend(undefined, 'POST', path, options)
    : call(url, 'POST', path, options);
};

/** Completes a chat. @returns status, code, and the requests that providers got with their keys. */
async function ask(user: Caller, model = LUNA, more: object = {}) {
  const before = providers.requests.length;
  const { body, status } = await complete(user.key, model, more);
  const asked = providers.requests.slice(before).map((request) => ({
    model: `${request.provider}/${request.model}`,
    key: keyIn(request.headers),
  }));
  return { status, code: body?.error?.code ?? undefined, asked };
}

const byOwn = (user: Person, model = LUNA) => ({ model, key: ownKeyOf(user) });
const byPlatform = (model: string) => ({
  model,
  key: keyOfProvider(model.startsWith('openrouter') ? 'openrouter' : 'openai'),
});

/** Returns a user's calls, and the tokens that count against the quota. */
async function usageOf({ id }: Person) {
  await site.dependencies.ai.meter.flushed();
  const calls = await owner(
    `SELECT model, cost_usd::float8 AS cost, input_tokens + output_tokens AS tokens
       FROM usage_logs WHERE user_id = '${id}' ORDER BY id`,
  );
  const [quota] = await owner(
    `SELECT used::int, held::int FROM token_quotas WHERE user_id = '${id}'`,
  );
  return { calls, used: quota?.used ?? 0, held: quota?.held ?? 0 };
}

const useUp = ({ id }: Person) =>
  owner(
    `INSERT INTO token_quotas (user_id, month, used, held)
       VALUES ('${id}', date_trunc('month', now() AT TIME ZONE 'UTC')::date, 2000000, 0)
       ON CONFLICT (user_id, month) DO UPDATE SET used = excluded.used`,
  );

test('an own key is stored once the provider accepts the key', async () => {
  const ada = await caller();
  const apiKey = ownKeyOf(ada);
  const refused = await billing(ada, { action: 'enable-byok', provider: 'openai', apiKey });
  expect([refused.status, refused.body]).toMatchObject([
    400,
    { code: 'PROVIDER_KEY_REFUSED', provider: 'openai' },
  ]);
  const shown = async () => (await site.web(ada, 'GET', '/api/billing')).body.byok;
  expect(await shown()).toEqual({ enabled: false, providers: [] });
  providers.accepted.add(apiKey);
  const stored = await billing(ada, { action: 'enable-byok', provider: 'openai', apiKey });
  expect([stored.status, stored.body]).toEqual([
    200,
    { byok: { enabled: true, providers: ['openai'] } },
  ]);
  expect(await shown()).toEqual({ enabled: true, providers: ['openai'] });
});

test('an own key is not stored while the provider does not answer', async () => {
  const ada = await caller();
  const body = { action: 'enable-byok', provider: 'gemini', apiKey: 'own' };
  expect((await billing(ada, body)).status).toBe(503);
  expect(await owner(`SELECT FROM provider_keys WHERE user_id = '${ada.id}'`)).toEqual([]);
});

test.each([
  { provider: 'nobody', apiKey: 'key' },
  { provider: 'openai' },
  { provider: 'openai', apiKey: '' },
  { provider: 'openai', apiKey: 'two\r\nlines' },
  { provider: 'openai', apiKey: 'x'.repeat(501) },
])('refuses the own key %j', async (given) => {
  const { body, status } = await billing(await site.person(), { action: 'enable-byok', ...given });
  expect([status, body.code]).toEqual([400, undefined]);
  expect(body.error).not.toBe('Invalid action');
});

test('an own key is not stored by a session that has ended during the call of the provider', async () => {
  const { id: userId, ...ada } = await caller();
  const apiKey = ownKeyOf({ ...ada, id: userId });
  providers.accepted.add(apiKey);
  const { db } = site.database;
  const { secrets, settings } = site.dependencies;
  const enabled = enableOwnKey(
    { tenant: db.asUser(userId), secrets, providers: settings.ai.providers },
    { userId, sessionId: 'a session that has ended' },
    { provider: 'openai', apiKey },
    { address: '192.0.2.1', requestId: 'a-request' },
  );
  await expect(enabled).rejects.toThrow(UnauthorizedError);
  expect(await owner(`SELECT FROM provider_keys WHERE user_id = '${userId}'`)).toEqual([]);
});

test('calls by an own key are paid by its owner: metered, free, and without quota', async () => {
  const ada = await caller();
  await enable(ada);
  await useUp(ada);
  for (const more of [{}, { stream: true }, { stream: true }]) {
    expect(await ask(ada, LUNA, more)).toEqual({
      status: 200,
      code: undefined,
      asked: [byOwn(ada)],
    });
  }
  const free = { model: LUNA, cost: 0, tokens: 5 };
  expect(await usageOf(ada)).toEqual({ calls: [free, free, free], used: 2_000_000, held: 0 });
  // Other providers are the platform's, and need quota.
  expect(await ask(ada, ELSEWHERE)).toEqual({ status: 429, code: 'QUOTA_EXCEEDED', asked: [] });
});

test("an agent's calls use its owner's own key", async () => {
  const ada = await caller();
  await enable(ada);
  await useUp(ada);
  const id = await site.agentOf(ada);
  const tenant = site.database.db.asUser(ada.id);
  const { secrets } = site.dependencies;
  await owner(`UPDATE agents SET model = 'gpt-6-luna' WHERE id = '${id}'`);
  await tenant.transaction((db) => createAgentSecrets(db, secrets, { id, userId: ada.id }));
  const statuses: number[] = [];
  const before = providers.requests.length;
  for (const token of await readAgentTokens(tenant, secrets, id)) {
    statuses.push((await complete(token, 'auto', {}, agents.url)).status);
  }
  expect(statuses.sort()).toEqual([200, 401]);
  const keys = providers.requests.slice(before).map(({ headers }) => keyIn(headers));
  expect(keys).toEqual([ownKeyOf(ada)]);
  expect((await usageOf(ada)).calls).toMatchObject([{ cost: 0 }]);
});

test("an own key serves no other user's calls", async () => {
  const [ada, bob] = [await caller(), await caller()];
  await enable(ada);
  expect(await ask(bob)).toMatchObject({ status: 200, asked: [byPlatform(LUNA)] });
  expect(await usageOf(bob)).toMatchObject({ used: 5 });
});

test("a refused own key is the caller's error: no other key replaces it", async () => {
  const ada = await caller();
  await enable(ada);
  for (const [status, code] of [
    [401, 'invalid_api_key'],
    [402, undefined],
    [429, 'insufficient_quota'],
  ] as const) {
    providers.behave('openai', fails(status, code));
    for (const stream of [false, true]) {
      expect(await ask(ada, LUNA, { stream })).toEqual({
        status: 400,
        code: 'PROVIDER_KEY_REFUSED',
        asked: [byOwn(ada)],
      });
    }
  }
  expect(await usageOf(ada)).toEqual({ calls: [], used: 0, held: 0 });
});

test('a call that moves on to a provider of the platform needs quota', async () => {
  const ada = await caller();
  await enable(ada);
  providers.behave('openai', fails(500));
  expect(await ask(ada)).toMatchObject({
    status: 200,
    asked: [byOwn(ada), byPlatform(ELSEWHERE)],
  });
  const { calls, used } = await usageOf(ada);
  expect([calls, used]).toMatchObject([[{ model: ELSEWHERE }], 5]);
  expect(calls[0]?.cost).toBeGreaterThan(0);
  await useUp(ada);
  expect(await ask(ada)).toEqual({ status: 429, code: 'QUOTA_EXCEEDED', asked: [byOwn(ada)] });
  expect(await usageOf(ada)).toMatchObject({ used: 2_000_000, held: 0 });
});

test('failures of own keys open no circuit for others, nor for their owner without the key', async () => {
  const [ada, bob, cy] = [await caller(), await caller(), await caller()];
  for (const user of [ada, bob]) await enable(user);
  providers.behave('openai', fails(500));
  for (const user of [ada, bob]) {
    for (let n = 0; n < 3; n++) await ask(user);
    // The owner's own circuit is open.
    expect((await ask(user)).asked[0]).toEqual(byPlatform(ELSEWHERE));
  }
  providers.behave();
  expect(await ask(cy)).toMatchObject({ status: 200, asked: [byPlatform(LUNA)] });
  await billing(ada, { action: 'disable-byok' });
  expect(await ask(ada)).toMatchObject({ status: 200, asked: [byPlatform(LUNA)] });
});

test("calls by an own key are limited to the plan's models", async () => {
  const ada = await caller('label');
  await enable(ada);
  expect(await ask(ada, 'openai/gpt-6.1-sol')).toEqual({
    status: 403,
    code: 'MODEL_RESTRICTED',
    asked: [],
  });
});

test('a provider for which the platform has no key serves only users with their own key', async () => {
  const [ada, bob] = [await caller('label'), await caller('label')];
  await store(ada, 'groq');
  const ofGroq = async ({ key }: Caller) => {
    const headers = { authorization: `Bearer ${key}` };
    const { body } = await site.backend(undefined, 'GET', '/v1/models', { headers });
    const ids = body.data.map(({ id }: { id: string }) => id);
    return ids.filter((id: string) => id.startsWith('groq/'));
  };
  expect(await ofGroq(ada)).toEqual(['groq/openai/gpt-oss-120b']);
  expect(await ofGroq(bob)).toEqual([]);
  const { ai } = site.dependencies;
  const sealed = await owner(`SELECT sealed_key FROM provider_keys WHERE user_id = '${ada.id}'`);
  const ownKeys = { groq: String(sealed[0]?.sealed_key) };
  const { router } = ai.forCaller({ userId: ada.id, ownKeys });
  const [first] = router.forModel('groq/openai/gpt-oss-120b', 'label');
  expect(first).toMatchObject({ provider: 'groq', model: 'openai/gpt-oss-120b' });
  const [elsewhere] = ai.router.forModel('groq/openai/gpt-oss-120b', 'label');
  expect(elsewhere).toMatchObject({ provider: 'openrouter' });
});

test("an own key lets its owner's agents chat where the platform has no provider", async () => {
  const ada = await caller('label');
  const agentId = await site.agentOf(ada);
  await owner(`UPDATE agents SET status = 'active', port = 19100 WHERE id = '${agentId}'`);
  async function* answer() {
    yield await Promise.resolve('good day');
  }
  // The part of the hosts that a chat uses.
  const directory = { accessTo: () => Promise.resolve({ ask: answer }) };
  const router = new Router(shippedModels(), {}, 'openrouter');
  const chats = new Chats(
    ...([directory, router] as unknown as ConstructorParameters<typeof Chats>),
  );
  const tenant = site.database.db.asUser(ada.id);
  const chat = async () => {
    const signal = AbortSignal.timeout(30_000);
    const question = { agentId, message: 'hello', plan: 'label' } as const;
    const events: unknown[] = [];
    for await (const event of await chats.ask(tenant, question, signal)) events.push(event);
    return JSON.stringify(events);
  };
  await expect(chat()).rejects.toMatchObject({ status: 503 });
  await store(ada, 'groq');
  expect(await chat()).toContain('good day');
});

test('an own key can be replaced, and deleted by itself or with all others', async () => {
  const ada = await caller();
  await enable(ada);
  await store(ada, 'groq');
  const replaced = `${ownKeyOf(ada)}-2`;
  providers.accepted.add(replaced);
  await billing(ada, { action: 'enable-byok', provider: 'openai', apiKey: replaced });
  expect((await ask(ada)).asked).toEqual([{ model: LUNA, key: replaced }]);
  const byok = async (body: object) => (await billing(ada, body)).body.byok.providers;
  expect(await byok({ action: 'disable-byok', provider: 'openai' })).toEqual(['groq']);
  expect((await ask(ada)).asked).toEqual([byPlatform(LUNA)]);
  expect(await byok({ action: 'disable-byok' })).toEqual([]);
  const actions = await owner(
    `SELECT action, subject FROM audit_log WHERE user_id = '${ada.id}' AND action LIKE 'provider-key%'
      ORDER BY id`,
  );
  expect(actions.map(({ action, subject }) => [action, subject])).toEqual([
    ['provider-key.enable', 'openai'],
    ['provider-key.enable', 'openai'],
    ['provider-key.disable', 'openai'],
    ['provider-key.disable', 'groq'],
  ]);
});

test('a suspended own key is neither used nor shown', async () => {
  const ada = await caller();
  await enable(ada);
  await owner(`UPDATE provider_keys SET suspended_at = now() WHERE user_id = '${ada.id}'`);
  expect((await ask(ada)).asked).toEqual([byPlatform(LUNA)]);
  expect((await site.web(ada, 'GET', '/api/billing')).body.byok.enabled).toBe(false);
});

test('an own key is sealed for its owner, and in no log, export or answer', async () => {
  const ada = await caller();
  await enable(ada);
  providers.behave('openai', fails(401));
  await ask(ada);
  const [row] = await owner(`SELECT * FROM provider_keys WHERE user_id = '${ada.id}'`);
  const sealed = String(row?.sealed_key);
  const { secrets } = site.dependencies;
  expect(secrets.open(sealed, ownKeyContext(ada.id, 'openai'))).toBe(ownKeyOf(ada));
  expect(() => secrets.open(sealed, ownKeyContext(ada.id, 'groq'))).toThrow();
  const exported = await site.web(ada, 'GET', '/api/settings/export');
  expect(exported.body.providerKeys).toMatchObject([{ provider: 'openai', suspended: false }]);
  for (const text of [...site.logged, exported.text]) {
    expect(text).not.toContain(ownKeyOf(ada));
    expect(text).not.toContain(sealed);
  }
});

test("a key that does not open leaves its owner's calls without an answer", async () => {
  const [ada, bob] = [await caller(), await caller()];
  await store(ada, 'openai');
  // Another owner's sealed key was copied into the row.
  await store(bob, 'openai');
  await owner(
    `UPDATE provider_keys SET sealed_key = (
       SELECT sealed_key FROM provider_keys WHERE user_id = '${bob.id}') WHERE user_id = '${ada.id}'`,
  );
  expect(await ask(ada)).toMatchObject({ status: 500, asked: [] });
});
