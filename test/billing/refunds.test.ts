import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { checkLedger, LEDGER_CHECKS } from '../../src/money/ledger-check/check-ledger.js';
import { creditsOf, hold, release, spentOf, transfer } from '../../src/money/ledger/ledger.js';
import { CENT } from '../../src/types/money.js';
import { grantCredits } from '../gateway/support.js';
import type { Person } from '../money/wallets/support.js';
import { queryRows, waitingConnections } from '../platform/database/catalog.js';
import { billingSite, type BillingSite } from './support.js';

let site: BillingSite;
let ada: Person;

beforeAll(async () => {
  site = await billingSite();
});
beforeEach(async () => {
  ada = await site.person();
});
afterAll(() => site?.close());

let runs = 0;
const spend = (cents: number) =>
  transfer(site.database.db.asPlatform(), {
    debit: creditsOf(ada.id),
    credit: spentOf(ada.id),
    amount: BigInt(cents) * CENT,
    currency: 'usd',
    cause: `gateway:run-${(runs += 1)}`,
  });

const entries = async () =>
  (await site.web(ada, 'GET', '/api/credits')).body.entries.map(
    ({ amount, reason }: { amount: string; reason: string }) => `${reason} ${amount}`,
  );

const differences = async () => (await checkLedger(site.database.db, LEDGER_CHECKS)).differences;

test('a refund removes unspent credits', async () => {
  const payment = await site.buy(ada);
  site.processor.refund(payment, 300);
  await site.catchUp();
  expect(await site.moneyOf(ada)).toEqual({ credits: '7.000000', debt: '0.000000' });
  site.processor.refund(payment, 700);
  await site.catchUp();
  expect(await site.moneyOf(ada)).toEqual({ credits: '0.000000', debt: '0.000000' });
  expect(await entries()).toEqual([
    'reversal -7.000000',
    'reversal -3.000000',
    'checkout 10.000000',
  ]);
  expect(await differences()).toEqual([]);
});

test('spent credits become a debt, which the next bought credits pay first', async () => {
  const payment = await site.buy(ada);
  await spend(400);
  site.processor.refund(payment, 1_000);
  await site.catchUp();
  expect(await site.moneyOf(ada)).toEqual({ credits: '0.000000', debt: '4.000000' });
  expect((await site.web(ada, 'GET', '/api/credits')).body.balance).toBe('0.000000');
  expect(await entries()).toEqual([
    'reversal -10.000000',
    'gateway -4.000000',
    'checkout 10.000000',
  ]);
  await site.buy(ada, 500);
  expect(await site.moneyOf(ada)).toEqual({ credits: '1.000000', debt: '0.000000' });
  expect(await differences()).toEqual([]);
});

test('granted credits pay no debt', async () => {
  const payment = await site.buy(ada);
  await spend(1_000);
  site.processor.refund(payment, 1_000);
  await site.catchUp();
  await grantCredits(site.database.db, ada.id, 1_000n * CENT);
  await site.catchUp();
  expect(await site.moneyOf(ada)).toEqual({ credits: '0.000000', debt: '10.000000' });
  expect((await site.web(ada, 'GET', '/api/credits')).body.balance).toBe('10.000000');
});

test('held credits are not removed before the run ends', async () => {
  const payment = await site.buy(ada);
  const platform = site.database.db.asPlatform();
  const run = { debit: creditsOf(ada.id), credit: spentOf(ada.id), currency: 'usd' } as const;
  const cause = `gateway:held-${ada.id}`;
  await hold(platform, { ...run, amount: 100n * CENT, cause, forMs: 60_000 });
  expect((await site.web(ada, 'GET', '/api/credits')).body.held).toBe('1.000000');
  site.processor.refund(payment, 1_000);
  await site.catchUp();
  expect(await site.moneyOf(ada)).toEqual({ credits: '1.000000', debt: '1.000000' });
  await release(platform, cause);
  await site.buy(ada, 500);
  expect(await site.moneyOf(ada)).toEqual({ credits: '5.000000', debt: '0.000000' });
});

test('a failed refund is credited again', async () => {
  const payment = await site.buy(ada);
  const refund = site.processor.refund(payment, 1_000);
  await site.catchUp();
  site.processor.failRefund(payment, refund, 1_000);
  await site.catchUp();
  expect(await site.moneyOf(ada)).toEqual({ credits: '10.000000', debt: '0.000000' });
  expect(await differences()).toEqual([]);
});

test('an open dispute reverses the payment, and a won one restores it', async () => {
  const payment = await site.buy(ada);
  await spend(250);
  site.processor.dispute(payment, 'needs_response');
  await site.catchUp();
  expect(await site.moneyOf(ada)).toEqual({ credits: '0.000000', debt: '2.500000' });
  site.processor.dispute(payment, 'won');
  await site.catchUp();
  expect(await site.moneyOf(ada)).toEqual({ credits: '7.500000', debt: '0.000000' });
  expect(await differences()).toEqual([]);
});

test('a refund and a lost dispute remove no more than the credits of the checkout', async () => {
  const payment = await site.buy(ada);
  site.processor.refund(payment, 600);
  site.processor.dispute(payment, 'lost');
  await site.catchUp();
  expect(await site.moneyOf(ada)).toEqual({ credits: '0.000000', debt: '0.000000' });
});

test('a refund of a payment made elsewhere changes nothing', async () => {
  await site.buy(ada);
  const at = { created: Math.floor(Date.now() / 1_000), type: 'charge.refunded' };
  const object = { payment_intent: 'pi_elsewhere', amount_refunded: 500, currency: 'usd' };
  await site.deliver({ ...at, id: `evt_elsewhere_${ada.id.slice(0, 8)}`, data: { object } });
  await site.apply();
  expect(await site.moneyOf(ada)).toEqual({ credits: '10.000000', debt: '0.000000' });
});

test('two payments of one user that are refunded concurrently are booked without a deadlock', async () => {
  const payments = [await site.buy(ada), await site.buy(ada, 500)];
  await spend(1_500);
  for (const payment of payments) site.processor.refund(payment, 500);
  for (const event of site.processor.events.slice(-2)) await site.deliver(event);
  await site.apply();
  expect(await site.moneyOf(ada)).toEqual({ credits: '0.000000', debt: '10.000000' });
});

test('the check of the ledger names checkouts, refunds and debts that differ', async () => {
  const payment = await site.buy(ada);
  site.processor.refund(payment, 100);
  await site.catchUp();
  const [{ id } = { id: '' }] = await site.database.db
    .asUser(ada.id)
    .query<{ id: string }>('SELECT id FROM checkouts');
  const owner = (sql: string) => queryRows(site.database.ownerUrl, sql);
  await owner(`UPDATE checkouts SET taken_back = taken_back + 1 WHERE id = '${id}'`);
  expect(await differences()).toContain(
    `reversal:${id} is booked in another amount than its refunds and disputes`,
  );
  await owner(`UPDATE checkouts SET taken_back = taken_back - 1, cents = 999 WHERE id = '${id}'`);
  expect(await differences()).toContain(`checkout:${id} is another transfer in the ledger`);
  await owner(`UPDATE checkouts SET cents = 1000, paid_at = NULL WHERE id = '${id}'`);
  expect(await differences()).toContain(
    `checkout:${id} is in the ledger, and no checkout was paid for it`,
  );
  await owner(`UPDATE checkouts SET paid_at = now() WHERE id = '${id}'`);
  expect(await differences()).toEqual([]);
});

test('a refund that is reported while its payment is being booked is not lost', async () => {
  const { body } = await site.web(ada, 'GET', '/api/wallet/top-up');
  const payment = site.processor.pay(body.sessionId);
  site.processor.refund(payment, 400);
  const [paid = {}, refunded = {}] = site.processor.events.slice(-2);
  await site.deliver(paid);
  // Holds the payment's lock while the refund is received and applied.
  const { db } = site.database;
  let applied: Promise<void> | undefined;
  await db.asPlatform().transaction(async (locking) => {
    await locking.lock(`payment ${payment}`);
    await site.deliver(refunded);
    applied = site.apply();
    await expect.poll(() => waitingConnections(site.database.ownerUrl)).toBe(2);
  });
  await applied;
  expect(await site.moneyOf(ada)).toEqual({ credits: '6.000000', debt: '0.000000' });
});
