import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Person } from '../money/wallets/support.js';
import { queryRows } from '../platform/database/catalog.js';
import { billingSite, type BillingSite } from './support.js';

let site: BillingSite;
let ada: Person;

beforeAll(async () => {
  site = await billingSite();
});
beforeEach(async () => {
  ada = await site.person();
  await owner(
    `DELETE FROM subscriptions; DELETE FROM subscription_checkouts; DELETE FROM checkouts`,
  );
});
afterAll(() => site?.close());

const owner = (sql: string) => queryRows(site.database.ownerUrl, sql);

const billing = async () => (await site.web(ada, 'GET', '/api/billing')).body;

const buy = async (plan = 'solo') =>
  (await site.web(ada, 'POST', '/api/billing', { body: { action: 'create-checkout', plan } })).body
    .sessionId as string;

/** Makes all checkouts older than any can be paid. */
const age = () =>
  owner(
    `UPDATE subscription_checkouts SET created_at = now() - interval '66 minutes';
     UPDATE checkouts SET created_at = now() - interval '66 minutes'`,
  );

const NOTHING = { subscriptions: 0, checkouts: 0, failures: 0 };

test('a pass reads subscriptions whose period or grace has ended, whose event was lost', async () => {
  const id = await site.subscribe(ada);
  expect(await site.reconciliation.pass()).toEqual(NOTHING);
  site.processor.subscriptions.cancel(id);
  await owner(
    `UPDATE subscriptions SET period_start = now() - interval '2 days',
            period_end = now() - interval '1 day'`,
  );
  expect(await billing()).toMatchObject({ plan: 'solo', status: 'active' });
  expect(await site.reconciliation.pass()).toEqual({ ...NOTHING, subscriptions: 1 });
  expect(await billing()).toMatchObject({ plan: null, status: 'ended' });
  expect(await site.reconciliation.pass()).toEqual(NOTHING);
});

test('a pass reads unpaid subscriptions whose grace has ended, and mails their owner once', async () => {
  await owner(`UPDATE users SET email_verified_at = now() WHERE id = '${ada.id}'`);
  const id = await site.subscribe(ada);
  site.processor.subscriptions.renew(id, false);
  await site.catchUp();
  for (const invoice of site.processor.subscriptions.openInvoices(id)) {
    invoice.created -= 8 * 86_400;
  }
  await owner(`UPDATE subscriptions SET holds_until = now() - interval '1 minute'`);
  for (let n = 0; n < 2; n += 1) {
    expect(await site.reconciliation.pass()).toMatchObject({ subscriptions: 1, failures: 0 });
  }
  expect(await billing()).toMatchObject({ plan: null, status: 'ended' });
  expect(
    await owner(`SELECT FROM mails WHERE user_id = '${ada.id}' AND kind = 'plan-ended'`),
  ).toHaveLength(1);
});

test('a pass grants the plan of a paid checkout whose events were lost', async () => {
  site.processor.pay(await buy());
  await age();
  expect(await site.reconciliation.pass()).toEqual({ ...NOTHING, checkouts: 1 });
  await site.apply();
  expect(await billing()).toMatchObject({ plan: 'solo', status: 'active' });
  expect(await site.reconciliation.pass()).toEqual(NOTHING);
});

test('a pass has paid credits booked whose event was lost, once', async () => {
  const { body } = await site.web(ada, 'GET', '/api/wallet/top-up');
  site.processor.pay(body.sessionId);
  await age();
  expect(await site.reconciliation.pass()).toEqual({ ...NOTHING, checkouts: 1 });
  await site.apply();
  expect(await site.moneyOf(ada)).toMatchObject({ credits: '10.000000' });
  await site.catchUp();
  expect(await site.moneyOf(ada)).toMatchObject({ credits: '10.000000' });
});

test('a pass ends checkouts that expired, and those that were never made, and no others', async () => {
  const expired = await buy();
  await buy('network');
  site.processor.down = 503;
  await site.web(ada, 'GET', '/api/payproc/credits?price=credits-500');
  site.processor.down = undefined;
  await owner(`UPDATE subscription_checkouts SET ended_at = NULL`);
  await age();
  expect(await site.reconciliation.pass()).toMatchObject({ failures: 0 });
  expect(
    await owner(
      `SELECT session_id = '${expired}' AS expired, ended_at IS NOT NULL AS ended
         FROM subscription_checkouts ORDER BY created_at, expired DESC`,
    ),
  ).toEqual([
    { expired: true, ended: true },
    { expired: false, ended: false },
  ]);
  expect(await owner('SELECT FROM checkouts WHERE ended_at IS NULL')).toEqual([]);
});

test('a pass ends after three failures, and the next one continues', async () => {
  for (let n = 0; n < 5; n += 1) {
    await owner(
      `INSERT INTO subscription_checkouts (id, user_id, kind, plan, session_id, created_at)
       VALUES ('lost-${n}', '${ada.id}', 'plan', 'solo', 'cs_${n}', now() - interval '2 hours')`,
    );
  }
  site.processor.down = 500;
  expect(await site.reconciliation.pass()).toEqual({ ...NOTHING, failures: 3 });
  site.processor.down = undefined;
  expect(await site.reconciliation.pass()).toEqual({ ...NOTHING, checkouts: 5 });
});

test('a subscription that is unknown to the processor stays valid until its period ends, and its return restores it', async () => {
  const id = await site.subscribe(ada);
  const { all } = site.processor.subscriptions;
  const sold = all.get(id);
  if (!sold) throw new Error('no subscription was sold');
  all.delete(id);
  await owner(
    `UPDATE subscriptions SET period_start = now() - interval '2 days',
            period_end = now() - interval '1 day'`,
  );
  for (let n = 0; n < 2; n += 1) {
    expect(await site.reconciliation.pass()).toEqual({ ...NOTHING, subscriptions: 1 });
    expect(await billing()).toMatchObject({ plan: 'solo', status: 'active' });
  }
  const notices = await owner(
    `SELECT id FROM pending_notifications WHERE id = 'subscription-unknown-${id}'`,
  );
  expect(notices).toHaveLength(1);

  await owner(`UPDATE subscriptions SET holds_until = now() - interval '1 minute'`);
  expect(await site.reconciliation.pass()).toEqual({ ...NOTHING, subscriptions: 1 });
  expect(await billing()).toMatchObject({ plan: null, status: 'ended' });
  expect(await site.reconciliation.pass()).toEqual(NOTHING);
  expect((await site.web(ada, 'GET', '/api/payproc/checkout?plan=solo')).status).toBe(303);

  all.set(id, sold);
  site.processor.subscriptions.renew(id, true);
  await site.catchUp();
  expect(await billing()).toMatchObject({ plan: 'solo', status: 'active' });
});
