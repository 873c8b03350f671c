import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hashPassword, passwordMatches } from '../../src/accounts/password.js';
import { registerAccount } from '../../src/accounts/register.js';
import { verifyPassword, type SignedInUser } from '../../src/accounts/sign-in.js';
import { TooManyRequestsError } from '../../src/errors.js';
import { networksOf } from '../../src/http/client-networks.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';

const RULES = { firstIsAdmin: false, adminEmails: ['boss@example.test'] };
const PASSWORD = 'correct horse';
const HERE = networksOf('192.0.2.1');
const ORIGIN = { address: '192.0.2.1', requestId: 'request' };

let database: TestDatabase;
let ann: SignedInUser;

beforeAll(async () => {
  database = await testDatabase();
  const registration = {
    ...{ email: 'ann@example.test', password: PASSWORD, name: 'Ann' },
    ...{ from: HERE, origin: ORIGIN },
  };
  ann = await registerAccount(database.db, registration, RULES);
});

afterAll(async () => {
  await database.close();
});

const verify = (email: string, password: string) =>
  verifyPassword(database.db, { email, password, from: HERE }, RULES);

describe('a password', () => {
  test('opens its account, whatever the letters of the email', async () => {
    expect(await verify('ann@example.test', PASSWORD)).toMatchObject({ user: ann });
    expect(await verify(' ANN@Example.Test', PASSWORD)).toMatchObject({ user: ann });
  });

  test('opens nothing when it is wrong or nobody has the email', async () => {
    expect(await verify('ann@example.test', 'correct horsf')).toBeUndefined();
    expect(await verify('ann@example.test', '')).toBeUndefined();
    expect(await verify('nobody@example.test', PASSWORD)).toBeUndefined();
  });

  test('makes no admin of who has registered under an address of ADMIN_EMAILS', async () => {
    const registration = {
      ...{ email: 'Boss@Example.Test', password: PASSWORD },
      ...{ from: HERE, origin: ORIGIN },
    };
    await registerAccount(database.db, registration, { ...RULES, adminEmails: [] });
    expect(await verify('boss@example.test', PASSWORD)).toMatchObject({ user: { isAdmin: false } });
  });

  test('is hashed for an unknown email, too, and so waits its turn like any other', async () => {
    const flood = Promise.allSettled(
      Array.from({ length: 150 }, () =>
        passwordMatches('x', 'scrypt$16384$8$1$AAAA$AAAA', HERE.site),
      ),
    );
    for (const email of ['nobody@example.test', 'ann@example.test']) {
      await expect(verify(email, PASSWORD)).rejects.toBeInstanceOf(TooManyRequestsError);
    }
    await flood;
  });

  test('is hashed differently every time, and is the same in either Unicode form', async () => {
    const [composed, decomposed] = ['pässwörd', 'pässwörd'.normalize('NFD')];
    const [first, second] = [
      await hashPassword(composed, HERE.site),
      await hashPassword(composed, HERE.site),
    ];
    expect(first).not.toBe(second);
    expect(await passwordMatches(decomposed, first, HERE.site)).toBe(true);
  });

  test('is turned away in a flood, and taken again after it', async () => {
    const flood = await Promise.allSettled(
      Array.from({ length: 150 }, () => passwordMatches('x', 'scrypt$2$8$1$AAAA$AAAA', HERE.site)),
    );
    const refusals = flood.filter((outcome) => outcome.status === 'rejected');
    expect(refusals.length).toBeGreaterThan(0);
    expect(refusals.length).toBeLessThan(150);
    for (const { reason } of refusals) expect(reason).toBeInstanceOf(TooManyRequestsError);
    expect(await verify('ann@example.test', PASSWORD)).toMatchObject({ user: ann });
  });
});
