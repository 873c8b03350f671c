import { randomBytes, scryptSync } from 'node:crypto';
import bcrypt from 'bcrypt';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createApiKey } from '../../../src/accounts/accounts/api-keys.js';
import { passwordHashing } from '../../../src/accounts/accounts/hashing-limiters.js';
import { comparePassword, hashPassword } from '../../../src/accounts/accounts/password.js';
import { registerAccount } from '../../../src/accounts/accounts/register.js';
import { createSession } from '../../../src/accounts/accounts/sessions.js';
import { verifyPassword, type SignedInUser } from '../../../src/accounts/accounts/sign-in.js';
import { TooManyRequestsError } from '../../../src/lib/errors.js';
import { networksOf } from '../../../src/platform/http/client-networks.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

const RULES = { firstIsAdmin: false, creditsGrantedADay: 0n, adminEmails: ['boss@example.test'] };
const PASSWORD = 'correct horse';
const HERE = networksOf('192.0.2.1');
const ORIGIN = { address: '192.0.2.1', requestId: 'request' };

let database: TestDatabase;
let ann: SignedInUser;

beforeAll(async () => {
  database = await testDatabase();
  const registration = {
    email: 'ann@example.test',
    password: PASSWORD,
    name: 'Ann',
    from: HERE,
    origin: ORIGIN,
  };
  ann = await registerAccount(database.db, registration, RULES);
});

afterAll(async () => {
  await database.close();
});

const verify = (email: string, password: string) =>
  verifyPassword(database.db, { email, password, from: HERE }, RULES);

describe('sign-in with a password', () => {
  test('a correct password signs in, with the email in upper or lower case', async () => {
    expect(await verify('ann@example.test', PASSWORD)).toMatchObject({ user: ann });
    expect(await verify(' ANN@Example.Test', PASSWORD)).toMatchObject({ user: ann });
  });

  test('a wrong password or an unknown email opens no session', async () => {
    expect(await verify('ann@example.test', 'correct horsf')).toBeUndefined();
    expect(await verify('ann@example.test', '')).toBeUndefined();
    expect(await verify('nobody@example.test', PASSWORD)).toBeUndefined();
  });

  test('signing in under an unverified address of ADMIN_EMAILS makes no admin', async () => {
    const registration = {
      email: 'Boss@Example.Test',
      password: PASSWORD,
      from: HERE,
      origin: ORIGIN,
    };
    await registerAccount(database.db, registration, { ...RULES, adminEmails: [] });
    expect(await verify('boss@example.test', PASSWORD)).toMatchObject({ user: { isAdmin: false } });
  });

  test('refuses known and unknown emails in the same way while hashing is overloaded, and recovers afterwards', async () => {
    let end: (() => void) | undefined;
    const ended = new Promise<void>((resolve) => (end = resolve));
    const flood = Promise.allSettled(
      Array.from({ length: 150 }, () => passwordHashing.run({ owner: HERE.site }, () => ended)),
    );
    for (const email of ['nobody@example.test', 'ann@example.test']) {
      await expect(verify(email, PASSWORD)).rejects.toBeInstanceOf(TooManyRequestsError);
    }
    end?.();
    const refusals = (await flood).filter((outcome) => outcome.status === 'rejected');
    expect(refusals).toHaveLength(138);
    for (const { reason } of refusals) expect(reason).toBeInstanceOf(TooManyRequestsError);
    expect(await verify('ann@example.test', PASSWORD)).toMatchObject({ user: ann });
  });

  test('hashes a password with a new salt each time and matches both of its Unicode forms', async () => {
    const [composed, decomposed] = ['pässwörd', 'pässwörd'.normalize('NFD')];
    const [first, second] = [
      await hashPassword(composed, HERE.site),
      await hashPassword(composed, HERE.site),
    ];
    expect(first).not.toBe(second);
    expect(await comparePassword(decomposed, first, HERE.site)).toEqual({ matches: true });
  });
});

describe('a password hashed at a lower cost', () => {
  const old = { N: 2 ** 15, r: 8, p: 1, maxmem: 2 ** 26 };

  /** Makes a hash as earlier releases stored it. */
  function oldHash(): string {
    const salt = randomBytes(16);
    const hash = scryptSync(PASSWORD, salt, 32, old);
    return `scrypt$${old.N}$${old.r}$${old.p}$${salt.toString('base64url')}$${hash.toString('base64url')}`;
  }
  const stored = async () =>
    (await database.db.asUser(ann.id).transaction((db) => db.User.findByPk(ann.id)))?.passwordHash;
  const store = (passwordHash: string) =>
    database.db
      .asUser(ann.id)
      .transaction((db) => db.User.update({ passwordHash }, { where: { id: ann.id } }));

  test("a sign-in with an old hash succeeds and rehashes the password at today's cost", async () => {
    const before = oldHash();
    await store(before);
    expect(await verify(ann.email, 'correct horsf')).toBeUndefined();
    expect(await stored()).toBe(before);

    const proof = await verify(ann.email, PASSWORD);
    expect(await stored()).toMatch(/^scrypt\$32768\$8\$3\$/);
    expect(proof).toMatchObject({ user: ann, passwordHash: await stored() });
    expect(await verify(ann.email, PASSWORD)).toMatchObject({ passwordHash: await stored() });
  });

  test('concurrent sign-ins with an old hash all open a session', async () => {
    await store(oldHash());
    const place = { ...ORIGIN, userAgent: undefined };
    const made = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const proof = await verify(ann.email, PASSWORD);
        return proof && createSession(database.db, proof, place);
      }),
    );
    expect(made).not.toContain(undefined);
  });
});

test('a new API key has the bcrypt cost 10', async () => {
  const owner = { userId: ann.id, requestId: 'request' };
  const { id } = await createApiKey(database.db, owner, { name: 'ci', site: HERE.site });
  const row = await database.db.asUser(ann.id).transaction((db) => db.ApiKey.findByPk(id));
  expect(bcrypt.getRounds(row?.keyHash ?? '')).toBe(10);
});
