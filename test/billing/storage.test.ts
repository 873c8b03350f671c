import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { grantPlan } from '../../src/accounts/accounts/subscriptions.js';
import type { Person } from '../money/wallets/support.js';
import { queryRows } from '../platform/database/catalog.js';
import { billingSite, type BillingSite } from './support.js';

const GIB = 1024 ** 3;

let site: BillingSite;
let ada: Person;

beforeAll(async () => {
  site = await billingSite();
});
beforeEach(async () => {
  ada = await site.person();
  await grantPlan(site.database.db, ada.id, 'solo', { actor: 'operator', requestId: 'r' });
});
afterAll(() => site?.close());

const upgrade = (plan: unknown = '10gb', person: Person | undefined = ada) =>
  site.web(person, 'POST', '/api/payproc/storage-upgrade', { body: { plan } });

const billing = async () => (await site.web(ada, 'GET', '/api/billing')).body;

test.each([
  ['10gb', 200, 10],
  ['50gb', 800, 50],
  ['200gb', 2_500, 200],
])('the storage plan %s is bought and cancelled beside the plan', async (plan, pence, size) => {
  const { body, status } = await upgrade(plan);
  expect(status).toBe(200);
  const session = site.processor.sessions.get(body.sessionId);
  expect(session).toMatchObject({ url: body.url, mode: 'subscription', amount_total: pence });
  const id = site.processor.pay(body.sessionId);
  await site.catchUp();
  expect(await billing()).toMatchObject({
    plan: 'solo',
    source: 'operator',
    storage: { plan, bytes: size * GIB },
  });
  site.processor.subscriptions.cancel(id);
  await site.catchUp();
  expect(await billing()).toMatchObject({ plan: 'solo', storage: { plan: null, bytes: 0 } });
  expect(
    await queryRows(site.database.ownerUrl, `SELECT FROM mails WHERE user_id = '${ada.id}'`),
  ).toEqual([]);
});

test.each([undefined, null, '', '1tb', 'solo', '10GB', 10])(
  'the storage plan %j is refused',
  async (plan) => {
    const { body, status } = await site.web(ada, 'POST', '/api/payproc/storage-upgrade', {
      body: { plan },
    });
    expect([status, body.error]).toEqual([400, 'Invalid plan']);
  },
);

test('storage needs a session and a plan', async () => {
  const eve = await site.person();
  const refused = await upgrade('10gb', eve);
  expect([refused.status, refused.body.code]).toEqual([402, 'PLAN_REQUIRED']);
  const body = { plan: '10gb' };
  const path = '/api/payproc/storage-upgrade';
  expect((await site.web(undefined, 'POST', path, { body })).status).toBe(401);
  const key = await site.web(ada, 'POST', '/api/keys', { body: { name: 'ci' } });
  const headers = { authorization: `Bearer ${key.body.key}` };
  expect((await site.web(undefined, 'POST', path, { body, headers })).status).toBe(403);
});

test('storage is not sold while the processor is down', async () => {
  site.processor.down = 503;
  const { status } = await upgrade();
  site.processor.down = undefined;
  expect(status).toBe(500);
});

test('storage of the same owner is changed at the processor, apart from the plan', async () => {
  const plan = await site.subscribe(ada, 'network');
  const first = await upgrade();
  const id = site.processor.pay(first.body.sessionId);
  await site.catchUp();
  const { body } = await upgrade('50gb');
  expect(body.sessionId).toBeNull();
  await fetch(body.url, {
    method: 'POST',
    body: new URLSearchParams({ action: 'change' }),
    redirect: 'manual',
  });
  await site.catchUp();
  expect(await billing()).toMatchObject({
    plan: 'network',
    storage: { plan: '50gb', bytes: 50 * GIB },
  });
  const statuses = [plan, id].map((each) => site.processor.subscriptions.all.get(each)?.status);
  expect(statuses).toEqual(['active', 'active']);
});
