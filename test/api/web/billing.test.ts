import { afterAll, beforeAll, expect, test } from 'vitest';
import { grantPlan } from '../../../src/accounts/accounts/subscriptions.js';
import { creditsOf, grantedOf, hold, transfer } from '../../../src/money/ledger/ledger.js';
import { settle } from '../../ai/usage/support.js';
import { walletSite, type Person, type WalletSite } from '../../money/wallets/support.js';
import { queryRows } from '../../platform/database/catalog.js';
import { insertSql, ROWS } from '../../platform/database/rows.js';

const BY = { actor: 'operator', requestId: 'a-request' };

let site: WalletSite;
let ada: Person;

beforeAll(async () => {
  site = await walletSite();
  ada = await site.person();
});
afterAll(() => site?.close());

const owner = (sql: string) => queryRows(site.database.ownerUrl, sql);

const billing = async (user: Person) => {
  const { body, status } = await site.web(user, 'GET', '/api/billing');
  expect(status).toBe(200);
  return body;
};

const run = (user: Person | undefined, body: object) =>
  site.web(user, 'POST', '/api/billing', { body });

/** Adds a subscription of the processor. */
const buy = (user: Person, row: Record<string, string>) =>
  owner(
    insertSql('subscriptions', {
      ...ROWS.subscriptions?.(user.id, 1),
      source: 'processor',
      processor_id: `sub_${user.id}_${row.plan}`,
      ...row,
    }),
  );

test('billing shows no plan, no credits and the prices to a new user', async () => {
  const { prices, ...shown } = await billing(ada);
  expect(shown).toEqual({
    plan: null,
    status: 'none',
    source: null,
    periodEnd: null,
    credits: { balance: '0.000000', held: '0.000000', currency: 'USD' },
    byok: { enabled: false, providers: [] },
    storage: { plan: null, bytes: 0 },
  });
  const month = { currency: 'GBP', interval: 'month' };
  expect(prices.plans).toContainEqual({ plan: 'solo', price: 79, ...month });
  expect(prices.credits).toContainEqual({
    price: 'credits-500',
    amount: '5.000000',
    currency: 'USD',
  });
  expect(prices.storage).toContainEqual({
    plan: '10gb',
    bytes: 10 * 1024 ** 3,
    price: 2,
    ...month,
  });
});

test('billing shows the highest valid plan, and the state of the last one', async () => {
  const bob = await site.person();
  await grantPlan(site.database.db, bob.id, 'solo', BY);
  expect(await billing(bob)).toMatchObject({
    plan: 'solo',
    status: 'active',
    source: 'operator',
    periodEnd: null,
  });
  const periodEnd = '2026-02-01T00:00:00.000Z';
  const unpaid = { plan: 'network', status: 'past_due', period_end: periodEnd };
  await buy(bob, { ...unpaid, holds_until: '2100-01-01' });
  expect(await billing(bob)).toMatchObject({
    plan: 'network',
    status: 'past_due',
    source: 'processor',
    periodEnd,
  });
  await owner(`UPDATE subscriptions SET status = 'cancelled' WHERE user_id = '${bob.id}'`);
  expect(await billing(bob)).toMatchObject({ plan: null, status: 'ended' });
});

test('billing shows the valid storage plan', async () => {
  const bob = await site.person();
  await buy(bob, { kind: 'storage', plan: '50gb' });
  await buy(bob, { kind: 'storage', plan: '200gb', status: 'cancelled' });
  expect(await billing(bob)).toMatchObject({
    plan: null,
    status: 'none',
    storage: { plan: '50gb', bytes: 50 * 1024 ** 3 },
  });
});

test('billing shows bought and granted credits, with what is held', async () => {
  const bob = await site.person();
  const platform = site.database.db.asPlatform();
  const usd = { currency: 'usd' } as const;
  const [bought, granted] = [creditsOf(bob.id), grantedOf(bob.id)];
  const add = (debit: 'external' | 'referrals', credit: typeof bought | typeof granted) =>
    transfer(platform, { debit, credit, amount: 1_500_000n, ...usd, cause: `test:${credit}` });
  await add('external', bought);
  await add('referrals', granted);
  const held = { debit: bought, credit: 'treasury', amount: 250_000n, forMs: 60_000 } as const;
  await hold(platform, { ...held, ...usd, cause: `held:${bob.id}` });
  const credits = { balance: '3.000000', held: '0.250000', currency: 'USD' };
  expect(await billing(bob)).toMatchObject({ credits });
});

test('billing accepts API keys of any scope, and its actions only a session', async () => {
  const body = { name: 'ci', scopes: ['files'] };
  const { key } = (await site.web(ada, 'POST', '/api/keys', { body })).body;
  const headers = { authorization: `Bearer ${key}` };
  expect(await site.web(undefined, 'GET', '/api/billing', { headers })).toMatchObject({
    status: 200,
    body: { status: 'none' },
  });
  const refused = await site.web(undefined, 'POST', '/api/billing', {
    headers,
    body: { action: 'get-usage' },
  });
  expect([refused.status, refused.body.code]).toEqual([403, 'SESSION_REQUIRED']);
  for (const method of ['GET', 'POST']) {
    const anonymous = { body: method === 'POST' ? { action: 'get-usage' } : undefined };
    expect((await site.web(undefined, method, '/api/billing', anonymous)).status).toBe(401);
  }
});

test.each([{}, { action: 'sell' }, { action: 'toString' }, { action: 7 }])(
  'billing refuses the action of %j as invalid',
  async (body) => {
    const { status, body: answer } = await run(ada, body);
    expect([status, answer.error]).toEqual([400, 'Invalid action']);
  },
);

test('the usage of this month has the tokens that count, their limit, cost and calls', async () => {
  const bob = await site.person();
  const usage = async () => (await run(bob, { action: 'get-usage' })).body.usage;
  const period = new Date().toISOString().slice(0, 7);
  const nothing = { period, cost: '0.000000', calls: 0 };
  expect(await usage()).toEqual({ ...nothing, tokens: { used: 0, limit: 0 } });
  await grantPlan(site.database.db, bob.id, 'solo', BY);
  const call = {
    userId: bob.id,
    agentId: null,
    provider: 'openai',
    model: 'openai/gpt-4',
    inputTokens: 100,
    outputTokens: 20,
    costUsd: '0.000001',
    at: new Date().toISOString(),
  };
  await settle(site.database.db, [call, call]);
  await settle(site.database.db, [{ ...call, userId: ada.id }]);
  const tokens = { used: 240, limit: 2_000_000 };
  expect(await usage()).toEqual({ period, cost: '0.000002', calls: 2, tokens });
  await grantPlan(site.database.db, bob.id, 'network', BY);
  expect(await usage()).toMatchObject({ tokens: { used: 240, limit: null } });
});
