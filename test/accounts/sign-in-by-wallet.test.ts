// @module-tag attack
import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { signInByWallet, WALLET_ISSUER } from '../../src/accounts/sign-in-by-wallet.js';
import type { TenantTransaction } from '../../src/database/database.js';
import { queryRows } from '../database/catalog.js';
import { until } from '../support/docker.js';
import { newUser, testDatabase, type TestDatabase } from '../support/postgres.js';

const ORIGIN = { address: '192.0.2.1', requestId: 'a-request' };
const RULES = { adminEmails: [], firstIsAdmin: false };

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database?.close());

const newAddress = () => `0x${randomBytes(20).toString('hex')}`;
const signIn = (address: string) => signInByWallet(database.db, address, ORIGIN, RULES);
const owner = (sql: string) => queryRows<Record<string, unknown>>(database.ownerUrl, sql);
const link = (db: TenantTransaction, userId: string, subject: string) =>
  db.Identity.create({
    ...{ id: randomUUID(), userId, kind: 'wallet', issuer: WALLET_ISSUER, subject },
    label: subject,
    createdAt: new Date(),
  });

test('a wallet that is being linked while it signs in has no account of its own', async () => {
  const user = await newUser(database);
  const address = newAddress();
  const signedIn = await database.db.asPlatform().transaction(async (db) => {
    await link(db, user, address);
    const signingIn = signIn(address);
    // It has not seen the link, and waits to make one of its own.
    await until(async () => (await owner('SELECT FROM pg_locks WHERE NOT granted')).length > 0);
    return { signingIn };
  });
  expect((await signedIn.signingIn)?.user.id).toBe(user);
  expect(await owner(`SELECT FROM users WHERE email LIKE '${address}%'`)).toEqual([]);
});

test('what is written down of a new account: that it was made, and linked', async () => {
  const proof = await signIn(newAddress());
  const log = await owner(
    `SELECT action, detail ->> 'address' AS address FROM audit_log
      WHERE user_id = '${proof?.user.id}' ORDER BY id`,
  );
  expect(log).toEqual([
    { action: 'account.register', address: ORIGIN.address },
    { action: 'identity.link', address: ORIGIN.address },
  ]);
});

test('a linked wallet signs in to that account, and is seen to', async () => {
  const user = await newUser(database);
  const address = newAddress();
  await database.db.asPlatform().transaction((db) => link(db, user, address));
  expect((await signIn(address))?.user.id).toBe(user);
  const rows = await owner(`SELECT last_used_at FROM identities WHERE subject = '${address}'`);
  expect(rows).toEqual([{ last_used_at: expect.any(Date) }]);
});
