// @module-tag attack
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { verifyPassword } from '../../../src/accounts/accounts/sign-in.js';
import { SignInLimits, type SignInAttempt } from '../../../src/accounts/accounts/sign-in-limits.js';
import { TooManyRequestsError } from '../../../src/lib/errors.js';
import { networksOf } from '../../../src/platform/http/client-networks.js';
import { queryRows } from '../../platform/database/catalog.js';
import { makeAccount, PASSWORD } from '../../support/account.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

const RULES = { firstIsAdmin: false, adminEmails: [] };

let database: TestDatabase;
let limits: SignInLimits;

beforeAll(async () => {
  database = await testDatabase();
  limits = new SignInLimits(database.db);
});
afterAll(() => database?.close());

let hosts = 0;
const newHost = () => `198.18.${(hosts >> 8) & 255}.${hosts++ & 255}`;
const newEmail = () => `${randomUUID()}@example.test`;
const attempt = (email: string, address: string, known = false): SignInAttempt => ({
  email,
  from: networksOf(address),
  known,
});

/**
 * Attempts a sign-in that fails.
 *
 * @returns the seconds to wait if the guess was rate limited, else 0.
 */
async function guess(by: SignInAttempt): Promise<number> {
  try {
    expect(await limits.attempt(by, () => Promise.resolve(undefined))).toBeUndefined();
    return 0;
  } catch (error) {
    if (error instanceof TooManyRequestsError) return Number(error.facts.retryAfter);
    throw error;
  }
}
const succeed = (by: SignInAttempt) => limits.attempt(by, () => Promise.resolve(true));

/** Moves the recorded attempts back by this many seconds. */
const later = (seconds: number) =>
  queryRows(
    database.ownerUrl,
    `UPDATE sign_in_attempts SET drained_at = drained_at - interval '${seconds} s',
                                 blocked_until = blocked_until - interval '${seconds} s'`,
  );

test('checks only the first five of many concurrent guesses', async () => {
  const by = attempt(newEmail(), newHost());
  const waits = await Promise.all(Array.from({ length: 20 }, () => guess(by)));
  expect(waits.filter((wait) => wait === 0)).toHaveLength(5);
  await expect(succeed(by)).rejects.toThrow(TooManyRequestsError);
});

test('the wait doubles with each further guess, up to an hour', async () => {
  const by = attempt(newEmail(), newHost());
  for (let n = 0; n < 5; n++) expect(await guess(by)).toBe(0);
  const waits: number[] = [];
  for (let n = 0; n < 18; n++) {
    const wait = await guess(by);
    waits.push(wait);
    await later(wait);
    expect(await guess(by)).toBe(0);
  }
  expect(waits.slice(0, 6)).toEqual([1, 2, 4, 8, 16, 32]);
  expect(waits.slice(-2)).toEqual([3600, 3600]);
});

test('failed guesses are forgotten at one an hour', async () => {
  const by = attempt(newEmail(), newHost());
  for (let n = 0; n < 5; n++) await guess(by);
  await later(3 * 3600);
  const waits = [];
  for (let n = 0; n < 5; n++) waits.push(await guess(by));
  expect(waits).toEqual([0, 0, 0, 1, 1]);
});

test('a success is not counted and clears the earlier failures of its host for the account', async () => {
  const [email, host] = [newEmail(), newHost()];
  for (let n = 0; n < 3; n++) {
    for (let failed = 0; failed < 4; failed++) expect(await guess(attempt(email, host))).toBe(0);
    expect(await succeed(attempt(email, host))).toBe(true);
  }
});

test('successful sign-ins do not count against the host, the site or the account', async () => {
  const office = newHost();
  for (let n = 0; n < 31; n++) expect(await succeed(attempt(newEmail(), office))).toBe(true);
  const email = newEmail();
  for (let n = 0; n < 101; n++) {
    const address = `2001:db8:79:${n.toString(16)}::1`;
    expect(await succeed(attempt(email, address))).toBe(true);
  }
});

test('limits guesses of a host across accounts and of a site across hosts', async () => {
  const host = newHost();
  const failed = async (addresses: () => string, most: number) => {
    for (let n = 0; n <= most; n++) {
      if ((await guess(attempt(newEmail(), addresses()))) > 0) return n;
    }
    return most;
  };
  expect(await failed(() => host, 50)).toBe(30);
  let n = 0;
  expect(await failed(() => `2001:db8:77:${(n++).toString(16)}::1`, 100)).toBe(60);
  // A different site is not limited.
  expect(await guess(attempt(newEmail(), '2001:db8:78::1'))).toBe(0);
});

test('a guess that could not be checked is not counted', async () => {
  const by = attempt(newEmail(), newHost());
  const busy = new TooManyRequestsError('hashing queue is full', { max: 1, resetS: 1 });
  for (let n = 0; n < 8; n++) {
    await expect(limits.attempt(by, () => Promise.reject(busy))).rejects.toBe(busy);
  }
  // Only the one-second wait caused by the fifth attempt remains.
  await later(1);
  for (let n = 0; n < 5; n++) expect(await guess(by)).toBe(0);
});

test('an attacker with a hundred hosts does not lock the owner out of a known host', async () => {
  const home = newHost();
  const { email } = await makeAccount(database.db);
  const signIn = (address: string) =>
    verifyPassword(database.db, { email, password: PASSWORD, from: networksOf(address) }, RULES);
  expect(await signIn(home)).toBeDefined();
  for (let n = 0; n < 100; n++) await guess(attempt(email, newHost()));
  const refused = signIn(newHost());
  await expect(refused).rejects.toThrow(TooManyRequestsError);
  expect(await signIn(home)).toBeDefined();

  // A single host cannot reach the account's limit, however long it tries.
  const { email: other } = await makeAccount(database.db);
  const stranger = newHost();
  for (let n = 0; n < 60; n++) await later(await guess(attempt(other, stranger)));
  expect(await guess(attempt(other, newHost()))).toBe(0);
});

test('remembers twenty known hosts of a user for 90 days', async () => {
  const { email, ...owner } = await makeAccount(database.db);
  const known = (sql = '') =>
    queryRows<{ host: string }>(
      database.ownerUrl,
      `SELECT host FROM sign_in_hosts WHERE user_id = '${owner.id}' ${sql}`,
    );
  await queryRows(
    database.ownerUrl,
    `INSERT INTO sign_in_hosts SELECT '${owner.id}', 'host ' || n, now() - n * interval '1 day'
       FROM generate_series(1, 60) n`,
  );
  const from = networksOf(newHost());
  await verifyPassword(database.db, { email, password: PASSWORD, from }, RULES);
  expect(await known()).toHaveLength(20);
  expect(await known(`AND host = '${from.host}'`)).toHaveLength(1);
  await queryRows(
    database.ownerUrl,
    `UPDATE sign_in_hosts SET last_at = now() - interval '91 days' WHERE user_id = '${owner.id}'`,
  );
  const found = await database.db.call<{ known: boolean }>(
    { text: 'SELECT known FROM find_password_holder($1, $2)' },
    [email, from.host],
  );
  expect(found).toEqual([{ known: false }]);
});

test('removes forgotten attempts from the table', async () => {
  const count = async () =>
    Number(
      (
        await queryRows<{ count: string }>(
          database.ownerUrl,
          'SELECT count(*) FROM sign_in_attempts',
        )
      )[0]?.count,
    );
  for (let n = 0; n < 20; n++) await guess(attempt(newEmail(), newHost()));
  const before = await count();
  expect(before).toBeGreaterThanOrEqual(60);
  await later(7 * 24 * 3600);
  // Each guess adds three rows and removes twenty.
  const guesses = Math.ceil(before / 17) + 1;
  for (let n = 0; n < guesses; n++) await guess(attempt(newEmail(), newHost()));
  expect(await count()).toBe(3 * guesses);
});

test('sign-in attempts store no email', async () => {
  const email = 'a-password-typed-as-email';
  await guess(attempt(email, newHost()));
  const rows = await queryRows(database.ownerUrl, 'SELECT * FROM sign_in_attempts');
  expect(JSON.stringify(rows)).not.toContain(email);
});
