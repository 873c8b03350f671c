// @module-tag attack
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { creditsPaymentSource } from '../../src/gateway/credits-purse.js';
import { creditsOf, spentOf, transfer } from '../../src/money/ledger/ledger.js';
import { CENT } from '../../src/types/money.js';
import type { Person } from '../money/wallets/support.js';
import { queryRows } from '../platform/database/catalog.js';
import { billingSite, type BillingSite } from './support.js';

const DAY_MS = 24 * 60 * 60_000;

let site: BillingSite;
let ada: Person;

beforeAll(async () => {
  site = await billingSite();
});
beforeEach(async () => {
  ada = await site.person();
});
afterAll(() => site?.close());

const purse = (isPricedByOthers: boolean) =>
  creditsPaymentSource(site.database.db, ada.id, { isPricedByOthers }, { resaleDelayMs: DAY_MS });

/** Tries to pay a run. @returns the reason for a refusal. */
async function pay(isPricedByOthers = true, cents = 100): Promise<string | undefined> {
  const debit = { id: randomUUID(), amount: BigInt(cents) * CENT, plugin: 'p', action: 'a' };
  const refused = await purse(isPricedByOthers).hold(debit);
  return refused?.code;
}

const age = (hours: number) =>
  queryRows(
    site.database.ownerUrl,
    `UPDATE checkouts SET paid_at = now() - interval '${hours} hours' WHERE user_id = '${ada.id}'`,
  );

test('bought credits pay resold runs 24 hours after their payment, and others at once', async () => {
  await site.buy(ada);
  expect(await purse(true).remaining()).toBe(0n);
  expect(await pay()).toBe('CREDITS_EXHAUSTED');
  expect(await pay(false)).toBeUndefined();
  await age(23);
  expect(await pay()).toBe('CREDITS_EXHAUSTED');
  await age(25);
  expect(await purse(true).remaining()).toBe(900n * CENT);
  expect(await pay()).toBeUndefined();
  await site.buy(ada);
  expect(await purse(true).remaining()).toBe(800n * CENT);
  expect(await pay(true, 900)).toBe('CREDITS_EXHAUSTED');
});

test('an open dispute stops resold runs, and a won one does not', async () => {
  await site.buy(ada);
  const payment = await site.buy(ada, 500);
  await age(25);
  site.processor.dispute(payment, 'needs_response');
  await site.catchUp();
  expect(await pay()).toBe('CREDITS_EXHAUSTED');
  expect(await pay(false)).toBeUndefined();
  site.processor.dispute(payment, 'won');
  await site.catchUp();
  expect(await pay()).toBeUndefined();
});

test('a debt stops resold runs', async () => {
  const payment = await site.buy(ada);
  await transfer(site.database.db.asPlatform(), {
    debit: creditsOf(ada.id),
    credit: spentOf(ada.id),
    amount: 900n * CENT,
    currency: 'usd',
    cause: `gateway:${randomUUID()}`,
  });
  await age(25);
  // Held credits cannot pay the debt.
  expect(await pay(false, 50)).toBeUndefined();
  site.processor.refund(payment, 1_000);
  await site.catchUp();
  expect(await site.moneyOf(ada)).toEqual({ credits: '0.500000', debt: '9.500000' });
  expect(await purse(true).remaining()).toBe(0n);
  expect(await pay(true, 1)).toBe('CREDITS_EXHAUSTED');
});
