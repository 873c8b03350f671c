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

/** Links a wallet to the account of a session. */
async function link(userId: string, address: string) {
  const sessionId = randomUUID();
  const place = { ...ORIGIN, userAgent: undefined, sessionId };
  await database.db.asPlatform().transaction((db) => addSession(db, userId, 'password', place));
  return linkIdentity(store(), { userId, sessionId }, walletIdentity(address), ORIGIN);
}

/** Has it happen while somebody else is at the first use of the wallet, whose turn comes first. */
async function meanwhile<T>(
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
    // Not awaited: they go on when this transaction has ended.
    return { waiting: Promise.all(begun) };
  });
  return waiting;
}

test('the first of all is the admin where the first account is one, and nobody after', async () => {
  const first = await signInByWallet(store(true), newAddress(), ORIGIN);
  const second = await signInByWallet(store(true), newAddress(), ORIGIN);
  expect([first.user.isAdmin, second.user.isAdmin]).toEqual([true, false]);
});

test('a wallet whose address ADMIN_EMAILS names is no admin: it is verified by nobody', async () => {
  const address = newAddress();
  const proof = await signInByWallet(store(false, [`${address}@wallet.service`]), address, ORIGIN);
  expect(proof.user.isAdmin).toBe(false);
});

test('first sign-ins at once come one after the other, and make one account', async () => {
  const address = newAddress();
  const proofs = await meanwhile(address, () => Promise.resolve(), [
    () => signIn(address),
    () => signIn(address),
    () => signIn(address),
  ]);
  expect(new Set(proofs.map(({ user }) => user.id)).size).toBe(1);
});

test('a wallet that is being linked while it signs in has no account of its own', async () => {
  const [user, address] = [await newUser(database), newAddress()];
  const linkFirst = (db: TenantTransaction) =>
    db.Identity.create({ id: randomUUID(), userId: user, ...walletIdentity(address) });
  const [proof] = await meanwhile(address, linkFirst, [() => signIn(address)]);
  expect(proof?.user.id).toBe(user);
  expect(await owner(`SELECT FROM users WHERE email LIKE '${address}%'`)).toEqual([]);
});

test('a wallet that is signing in while it is linked belongs to its own account', async () => {
  const [user, address] = [await newUser(database), newAddress()];
  const mine = await newUser(database);
  const signInFirst = (db: TenantTransaction) =>
    db.Identity.create({ id: randomUUID(), userId: mine, ...walletIdentity(address) });
  const linking = meanwhile(address, signInFirst, [() => link(user, address)]);
  await expect(linking).rejects.toThrow('This identity belongs to an account already');
});

test('a wallet that is disabled, or was given up, opens nothing', async () => {
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

test('what is written down of a new account: that it was made, and linked', async () => {
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

test('a linked wallet signs in to that account, and is seen to', async () => {
  const [user, address] = [await newUser(database), newAddress()];
  await link(user, address);
  expect((await signIn(address)).user.id).toBe(user);
  const rows = await owner(`SELECT last_used_at FROM identities WHERE subject = '${address}'`);
  expect(rows).toEqual([{ last_used_at: expect.any(Date) }]);
});
