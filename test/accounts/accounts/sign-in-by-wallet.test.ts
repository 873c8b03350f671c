// @module-tag attack
import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { linkIdentity } from '../../../src/accounts/accounts/identities.js';
import { IdentityRefusedError } from '../../../src/accounts/accounts/proven-identity.js';
import { addSession } from '../../../src/accounts/accounts/sessions.js';
import {
  signInByWallet,
  walletIdentity,
} from '../../../src/accounts/accounts/sign-in-by-wallet.js';
import type { TenantTransaction } from '../../../src/platform/database/database.js';
import { queryRows } from '../../platform/database/catalog.js';
import { until } from '../../support/until.js';
import { newUser, testDatabase, type TestDatabase } from '../../support/postgres.js';
import { testSecrets } from '../../support/secrets.js';

const ORIGIN = { address: '192.0.2.1', requestId: 'a-request' };

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database?.close());

const secrets = testSecrets();
const store = (firstIsAdmin = false, adminEmails: readonly string[] = []) => ({
  database: database.db,
  secrets,
  settings: { adminEmails, firstIsAdmin },
});
const newAddress = () => `0x${randomBytes(20).toString('hex')}`;
const signIn = (address: string) => signInByWallet(store(), address, ORIGIN);
const owner = (sql: string) => queryRows<Record<string, unknown>>(database.ownerUrl, sql);

/** Links a wallet to a user in a new session. */
async function link(userId: string, address: string) {
  const sessionId = randomUUID();
  const place = { ...ORIGIN, userAgent: undefined, sessionId };
  await database.db.asPlatform().transaction((db) => addSession(db, userId, 'password', place));
  return linkIdentity(store(), { userId, sessionId }, walletIdentity(address), ORIGIN);
}

/** Runs `then` while a transaction that holds the wallet's lock runs `first`. */
async function concurrently<T>(
  address: string,
  first: (db: TenantTransaction) => Promise<unknown>,
  then: readonly (() => Promise<T>)[],
): Promise<T[]> {
  const { waiting } = await database.db.asPlatform().transaction(async (db) => {
    await db.lock(`identity wallet eip155 ${address}`);
    await first(db);
    const begun = then.map((each) => each());
    const isWaiting = async () =>
      (await owner(`SELECT FROM pg_locks WHERE NOT granted AND locktype = 'advisory'`)).length ===
      begun.length;
    await until(isWaiting);
    // Wrapped so that they are not awaited here: they wait for the end of this transaction.
    return { waiting: Promise.all(begun) };
  });
  return waiting;
}

test('the first account created by a wallet is the admin where allowed, later ones are not', async () => {
  const first = await signInByWallet(store(true), newAddress(), ORIGIN);
  const second = await signInByWallet(store(true), newAddress(), ORIGIN);
  expect([first.user.isAdmin, second.user.isAdmin]).toEqual([true, false]);
});

test('a wallet account listed in ADMIN_EMAILS is not an admin, as its address is unverified', async () => {
  const address = newAddress();
  const proof = await signInByWallet(store(false, [`${address}@wallet.service`]), address, ORIGIN);
  expect(proof.user.isAdmin).toBe(false);
});

test('concurrent first sign-ins of a wallet run one by one and create one account', async () => {
  const address = newAddress();
  const proofs = await concurrently(address, () => Promise.resolve(), [
    () => signIn(address),
    () => signIn(address),
    () => signIn(address),
  ]);
  expect(new Set(proofs.map(({ user }) => user.id)).size).toBe(1);
});

test('a wallet linked during its sign-in signs in to the linked account and creates none', async () => {
  const [user, address] = [await newUser(database), newAddress()];
  const linkFirst = (db: TenantTransaction) =>
    db.Identity.create({ id: randomUUID(), userId: user, ...walletIdentity(address) });
  const [proof] = await concurrently(address, linkFirst, [() => signIn(address)]);
  expect(proof?.user.id).toBe(user);
  expect(await owner(`SELECT FROM users WHERE email LIKE '${address}%'`)).toEqual([]);
});

test('a wallet that signs in first cannot be linked to a different account', async () => {
  const [user, address] = [await newUser(database), newAddress()];
  const mine = await newUser(database);
  const signInFirst = (db: TenantTransaction) =>
    db.Identity.create({ id: randomUUID(), userId: mine, ...walletIdentity(address) });
  const linking = concurrently(address, signInFirst, [() => link(user, address)]);
  await expect(linking).rejects.toThrow('This identity belongs to an account already');
});

test('a wallet that is disabled or was unlinked cannot sign in', async () => {
  const [disabled, givenUp] = [newAddress(), newAddress()];
  const [, { user }] = [await signIn(disabled), await signIn(givenUp)];
  await owner(`UPDATE identities SET disabled_at = now() WHERE subject = '${disabled}'`);
  await owner(`UPDATE identities SET subject = 'another' WHERE user_id = '${user.id}'`);
  await expect(signIn(disabled)).rejects.toBeInstanceOf(IdentityRefusedError);
  await expect(signIn(givenUp)).rejects.toBeInstanceOf(IdentityRefusedError);
  await owner(
    `DELETE FROM identities WHERE user_id = '${user.id}';
     UPDATE users SET password_hash = 'x' WHERE id = '${user.id}'`,
  );
  await expect(signIn(givenUp)).rejects.toBeInstanceOf(IdentityRefusedError);
});

test('a new wallet account has audit entries for its registration and its link', async () => {
  const proof = await signIn(newAddress());
  const log = await owner(
    `SELECT action, detail ->> 'address' AS address FROM audit_log
      WHERE user_id = '${proof.user.id}' ORDER BY id`,
  );
  expect(log).toEqual([
    { action: 'account.register', address: ORIGIN.address },
    { action: 'identity.link', address: ORIGIN.address },
  ]);
});

test('a linked wallet signs in to its account, and the time of use is stored', async () => {
  const [user, address] = [await newUser(database), newAddress()];
  await link(user, address);
  expect((await signIn(address)).user.id).toBe(user);
  const rows = await owner(`SELECT last_used_at FROM identities WHERE subject = '${address}'`);
  expect(rows).toEqual([{ last_used_at: expect.any(Date) }]);
});
