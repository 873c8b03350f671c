import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import {
  type AccountDeletions,
  CleanupPendingError,
} from '../../src/accounts/accounts/account-deletions.js';
import { createAccountDeletions } from '../../src/services.js';
import { Supervisors } from '../../temporal/supervisors.js';
import { Client, Connection } from '@temporalio/client';
import type { Person } from '../money/wallets/support.js';
import { queryRows } from '../platform/database/catalog.js';
import { billingSite, type BillingSite } from './support.js';

let site: BillingSite;
let deletions: AccountDeletions;
let ada: Person;

beforeAll(async () => {
  site = await billingSite();
  const { docker, log, settings } = site.dependencies;
  const client = new Client({ connection: Connection.lazy({ address: '127.0.0.1:1' }) });
  const supervisors = new Supervisors(client, 'http://temporal-ui.test');
  const { db: database } = site.database;
  deletions = createAccountDeletions({ settings, database, docker, supervisors, log });
});
beforeEach(async () => {
  ada = await site.person();
});
afterAll(() => site?.close());

const owner = (sql: string) => queryRows(site.database.ownerUrl, sql);

const leave = async () => {
  const body = { confirm: ada.email };
  expect((await site.web(ada, 'DELETE', '/api/settings', { body })).status).toBe(202);
};

const end = () => deletions.leave('subscriptions', ada.id);

const statusOf = (id: string) => site.processor.subscriptions.all.get(id)?.status;

const buy = async (plan = 'solo') =>
  (await site.web(ada, 'POST', '/api/billing', { body: { action: 'create-checkout', plan } })).body
    .sessionId as string;

test('the subscriptions of an account are cancelled before anything else', async () => {
  expect(deletions.areas[0]).toBe('subscriptions');
  const id = await site.subscribe(ada);
  await leave();
  await end();
  expect(statusOf(id)).toBe('canceled');
  await end();
  await site.catchUp();
  const open = `SELECT FROM processor_events WHERE applied_at IS NULL`;
  expect(await owner(open)).toEqual([]);
  expect(await owner(`SELECT FROM mails WHERE user_id = '${ada.id}'`)).toEqual([]);
});

test('a subscription that is no longer paid for is cancelled as well', async () => {
  const id = await site.subscribe(ada);
  site.processor.subscriptions.giveUp(id);
  await site.catchUp();
  await leave();
  await end();
  expect(statusOf(id)).toBe('canceled');
});

test('the deletion waits while the processor is unavailable, and then cancels the subscription', async () => {
  const id = await site.subscribe(ada);
  await leave();
  site.processor.down = 503;
  await expect(end()).rejects.toThrow(CleanupPendingError);
  await expect(end()).rejects.toThrow('The payment processor has not cancelled the subscriptions');
  site.processor.down = undefined;
  expect(statusOf(id)).toBe('active');
  await end();
  expect(statusOf(id)).toBe('canceled');
});

test('an open checkout cannot be paid after the deletion', async () => {
  const sessionId = await buy();
  await leave();
  await end();
  expect(site.processor.sessions.get(sessionId)?.status).toBe('expired');
});

test('a checkout that was paid just before the deletion is cancelled, whenever its event arrives', async () => {
  for (const isEarly of [true, false]) {
    ada = await site.person();
    const id = site.processor.pay(await buy());
    await leave();
    if (isEarly) await site.catchUp();
    await end();
    await site.catchUp();
    expect(statusOf(id)).toBe('canceled');
    expect(await owner(`SELECT FROM subscriptions WHERE user_id = '${ada.id}'`)).toEqual([]);
  }
});

test('the deletion waits for a checkout that is being made', async () => {
  const insert = (id: string, age: string) =>
    owner(
      `INSERT INTO subscription_checkouts (id, user_id, kind, plan, created_at)
       VALUES ('${id}', '${ada.id}', 'plan', 'solo', now() - interval '${age}')`,
    );
  await insert('in-flight', '1 second');
  await insert('abandoned', '3 minutes');
  await leave();
  await expect(end()).rejects.toThrow('1 checkouts are being made');
  await owner(
    `UPDATE subscription_checkouts SET created_at = now() - interval '3 minutes'
      WHERE id = 'in-flight'`,
  );
  await end();
});

test('an account without a subscription is deleted without the processor', async () => {
  await leave();
  site.processor.down = 503;
  await end();
  site.processor.down = undefined;
});
