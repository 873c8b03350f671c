import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hashPassword, passwordMatches } from '../../src/accounts/password.js';
import { registerAccount } from '../../src/accounts/register.js';
import {
  createSession,
  deleteSession,
  findSession,
  SESSION_LIFETIME_MS,
} from '../../src/accounts/sessions.js';
import { verifyPassword, type SignedInUser } from '../../src/accounts/sign-in.js';
import { TooManyRequestsError } from '../../src/errors.js';
import { queryRows } from '../database/catalog.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';

const RULES = { firstIsAdmin: false, adminEmails: ['boss@example.test'] };
const PASSWORD = 'correct horse';

let database: TestDatabase;
let ann: SignedInUser;

beforeAll(async () => {
  database = await testDatabase();
  const registration = { email: 'ann@example.test', password: PASSWORD, name: 'Ann' };
  ann = await registerAccount(database.db, registration, RULES);
});

afterAll(async () => {
  await database.close();
});

const verify = (email: string, password: string) =>
  verifyPassword(database.db, email, password, RULES);

const owner = (sql: string) => queryRows<Record<string, unknown>>(database.ownerUrl, sql);

describe('a password', () => {
  test('opens its account, whatever the letters of the email', async () => {
    expect(await verify('ann@example.test', PASSWORD)).toEqual(ann);
    expect(await verify(' ANN@Example.Test', PASSWORD)).toEqual(ann);
  });

  test('opens nothing when it is wrong or nobody has the email', async () => {
    expect(await verify('ann@example.test', 'correct horsf')).toBeUndefined();
    expect(await verify('ann@example.test', '')).toBeUndefined();
    expect(await verify('nobody@example.test', PASSWORD)).toBeUndefined();
  });

  test('makes an admin of who ADMIN_EMAILS names', async () => {
    const registration = { email: 'Boss@Example.Test', password: PASSWORD };
    await registerAccount(database.db, registration, { ...RULES, adminEmails: [] });
    expect(await verify('boss@example.test', PASSWORD)).toMatchObject({ isAdmin: true });
  });

  test('is hashed for an unknown email, too, and so waits its turn like any other', async () => {
    const flood = Promise.allSettled(
      Array.from({ length: 150 }, () => passwordMatches('x', 'scrypt$16384$8$1$AAAA$AAAA')),
    );
    for (const email of ['nobody@example.test', 'ann@example.test']) {
      await expect(verify(email, PASSWORD)).rejects.toBeInstanceOf(TooManyRequestsError);
    }
    await flood;
  });

  test('is hashed differently every time, and is the same in either Unicode form', async () => {
    const [composed, decomposed] = ['pässwörd', 'pässwörd'.normalize('NFD')];
    const [first, second] = [await hashPassword(composed), await hashPassword(composed)];
    expect(first).not.toBe(second);
    expect(await passwordMatches(decomposed, first)).toBe(true);
  });

  test('is turned away in a flood, and taken again after it', async () => {
    const flood = await Promise.allSettled(
      Array.from({ length: 150 }, () => passwordMatches('x', 'scrypt$2$8$1$AAAA$AAAA')),
    );
    const refusals = flood.filter((outcome) => outcome.status === 'rejected');
    expect(refusals.length).toBeGreaterThan(0);
    expect(refusals.length).toBeLessThan(150);
    for (const { reason } of refusals) expect(reason).toBeInstanceOf(TooManyRequestsError);
    expect(await verify('ann@example.test', PASSWORD)).toEqual(ann);
  });
});

describe('a session', () => {
  test('is found by its token, with its user and CSRF token, for 30 days', async () => {
    const { token, csrfToken, expiresAt } = await createSession(database.db, ann.id);
    const session = await findSession(database.db, token, RULES);
    expect(session).toEqual({ user: ann, csrfToken, expiresAt });
    expect(expiresAt.getTime() - Date.now()).toBeGreaterThan(SESSION_LIFETIME_MS - 60_000);
    expect(expiresAt.getTime() - Date.now()).toBeLessThanOrEqual(SESSION_LIFETIME_MS);
  });

  test('is stored under the hash of its token alone', async () => {
    const { token } = await createSession(database.db, ann.id);
    const rows = await owner('SELECT * FROM sessions');
    expect(JSON.stringify(rows)).not.toContain(token);
    const hash = createHash('sha256').update(token).digest('hex');
    expect(rows.map((row) => row.token_hash)).toContain(hash);
    expect(await findSession(database.db, hash, RULES)).toBeUndefined();
  });

  test('is over once it is deleted, and others are not', async () => {
    const [one, other] = [
      await createSession(database.db, ann.id),
      await createSession(database.db, ann.id),
    ];
    await deleteSession(database.db, one.token);
    await deleteSession(database.db, one.token);
    expect(await findSession(database.db, one.token, RULES)).toBeUndefined();
    expect(await findSession(database.db, other.token, RULES)).toBeDefined();
  });

  test.each(['', 'x', 'x'.repeat(43), 'x'.repeat(10_000), "' OR true --"])(
    'is not found by a wrong token (%#)',
    async (token) => {
      expect(await findSession(database.db, token, RULES)).toBeUndefined();
      await expect(deleteSession(database.db, token)).resolves.toBeUndefined();
    },
  );

  test('is over when it expires, and is cleared away by later ones, some at a time', async () => {
    const { token } = await createSession(database.db, ann.id);
    const expire = `UPDATE sessions SET expires_at = now() - interval '1 minute'`;
    await owner(`INSERT INTO sessions SELECT 'old-' || n, '${ann.id}', '', now(), now()
                   FROM generate_series(1, 200) n`);
    await owner(expire);
    expect(await findSession(database.db, token, RULES)).toBeUndefined();

    const expired = async () =>
      Number((await owner('SELECT count(*) FROM sessions WHERE expires_at <= now()'))[0]?.count);
    const before = await expired();
    await createSession(database.db, ann.id);
    const after = await expired();
    expect(after).toBeLessThan(before);
    expect(after).toBeGreaterThan(0);
    for (let n = 0; n < 10 && (await expired()) > 0; n += 1) {
      await Promise.all([1, 2].map(() => createSession(database.db, ann.id)));
    }
    expect(await expired()).toBe(0);
  });
});
