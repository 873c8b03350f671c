import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  isFirstAdminPending,
  registerAccount,
  type Registration,
} from '../../../src/accounts/accounts/register.js';
import { getProfile } from '../../../src/accounts/accounts/profile.js';
import { verifyPassword } from '../../../src/accounts/accounts/sign-in.js';
import { BadRequestError, ConflictError } from '../../../src/lib/errors.js';
import { networksOf } from '../../../src/platform/http/client-networks.js';
import { ONE } from '../../../src/types/money.js';
import { queryRows } from '../../platform/database/catalog.js';
import { holdPostgres, testDatabase, type TestDatabase } from '../../support/postgres.js';

const creditsGrantedADay = 20n * ONE;
const DEVELOPMENT = { firstIsAdmin: true, adminEmails: [], creditsGrantedADay };
const PRODUCTION = { firstIsAdmin: false, adminEmails: [], creditsGrantedADay };

let database: TestDatabase;

beforeAll(holdPostgres);

beforeEach(async () => {
  database = await testDatabase();
});

afterEach(async () => {
  await database.close();
});

const PASSWORD = 'correct horse';
const HERE = networksOf('192.0.2.1');
const ORIGIN = { address: '192.0.2.1', requestId: 'request' };

const register = (
  given: Partial<Registration>,
  rules: Parameters<typeof registerAccount>[2] = PRODUCTION,
) =>
  registerAccount(
    database.db,
    { email: 'ann@example.test', password: PASSWORD, from: HERE, origin: ORIGIN, ...given },
    rules,
  );

async function stored(email: string) {
  const [user] = await queryRows<{ id: string; referral_code: string; password_hash: string }>(
    database.ownerUrl,
    `SELECT id, referral_code, password_hash FROM users WHERE email = '${email}'`,
  );
  if (!user) throw new Error('not stored');
  return user;
}

const credits = () =>
  queryRows(
    database.ownerUrl,
    'SELECT user_id, amount, debit, credit, cause FROM ledger_transfers ORDER BY id',
  );

describe('registration', () => {
  test('stores a new account with its email in lower case and its password hashed', async () => {
    const user = await register({ email: ' Ann@Example.TEST ', name: 'Ann' });
    expect(user).toMatchObject({ email: 'ann@example.test', name: 'Ann', isAdmin: false });
    const { id, password_hash } = await stored('ann@example.test');
    expect(id).toBe(user.id);
    expect(password_hash).toMatch(/^scrypt\$/);
    expect(password_hash).not.toContain(PASSWORD);
  });

  test.each([{}, { name: '' }, { name: '  ' }])(
    'derives the name of account %o from its email',
    async (given) => {
      expect(await register(given)).toMatchObject({ name: 'ann@example.test' });
    },
  );

  test.each(['', 'ann', 'ann@', '@example.test', 'a b@example.test', 'a@b@c', 'a@-b.test'])(
    'registration refuses %j as an email',
    async (email) => {
      await expect(register({ email })).rejects.toThrow(BadRequestError);
    },
  );

  test('registration refuses an email longer than mail allows and the address of a wallet account', async () => {
    for (const email of [`${'x'.repeat(250)}@example.test`, '0xAbc@Wallet.Service']) {
      await expect(register({ email })).rejects.toThrow(BadRequestError);
    }
  });

  test('registration accepts passwords from 8 characters to 1024 bytes', async () => {
    for (const password of ['1234567', 'x'.repeat(1025)]) {
      await expect(register({ password })).rejects.toThrow(BadRequestError);
    }
    await register({ password: 'eightch8', email: 'short@example.test' });
    await register({ password: 'x'.repeat(1024), email: 'long@example.test' });
  });

  test.each(['password', 'PassWord1', '12345678', 'qwertyuiop', 'iloveyou'])(
    'registration refuses the easily guessed password "%s"',
    { tags: 'attack' },
    async (password) => {
      await expect(register({ password })).rejects.toThrow('Password is too common');
    },
  );

  test('an email gets one account, in upper or lower case and under concurrency', async () => {
    const outcomes = await Promise.allSettled([
      register({}),
      register({ email: 'ANN@example.test' }),
    ]);
    const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
    expect(refused.map(({ reason }) => reason instanceof ConflictError)).toEqual([true]);
    await expect(register({})).rejects.toThrow(ConflictError);
  });

  test("registration under the operator's email cannot sign in as the operator", async () => {
    await expect(register({ email: 'operator@platform.invalid' })).rejects.toThrow(ConflictError);
    const rules = { adminEmails: [] };
    for (const password of ['', PASSWORD]) {
      const email = 'operator@platform.invalid';
      expect(
        await verifyPassword(database.db, { email, password, from: HERE }, rules),
      ).toBeUndefined();
    }
  });
});

describe('a referral code', () => {
  test('a referral code credits both accounts once, in upper or lower case', async () => {
    const ann = await register({});
    const { referral_code } = await stored(ann.email);
    const referralCode = referral_code.toLowerCase();
    const bob = await register({ email: 'bob@example.test', referralCode });
    const entry = (of: string, other: string) => ({
      user_id: of,
      amount: '1000000',
      debit: 'referrals',
      credit: `user:${of}:granted`,
      cause: `referral:${of}:${other}`,
    });
    expect(await credits()).toEqual([entry(ann.id, bob.id), entry(bob.id, ann.id)]);
    expect(await getProfile(database.db.asUser(ann.id), ann.id)).toMatchObject({
      credits: '1.000000',
    });
  });

  test('an unknown referral code creates neither an account nor a credit', async () => {
    const attempt = register({ referralCode: 'NOBODYS-CODE' });
    await expect(attempt).rejects.toThrow(new BadRequestError('Unknown referral code'));
    await expect(stored('ann@example.test')).rejects.toThrow('not stored');
    expect(await credits()).toEqual([]);
  });

  test('a generated referral code passes the validation at registration', async () => {
    const { email } = await register({});
    expect((await stored(email)).referral_code).toMatch(/^[A-Z0-9-]{1,20}$/);
  });
});

describe('the first account', () => {
  test('the first admin is awaited until an account exists, and only outside production', async () => {
    const awaited = (settings: typeof DEVELOPMENT) => isFirstAdminPending(database.db, settings);
    expect(await awaited(PRODUCTION)).toBe(false);
    expect(await awaited(DEVELOPMENT)).toBe(true);
    await register({}, DEVELOPMENT);
    expect(await awaited(DEVELOPMENT)).toBe(false);
  });

  test('the first account outside production is the admin, later accounts are not', async () => {
    expect(await register({}, DEVELOPMENT)).toMatchObject({ isAdmin: true });
    const second = await register({ email: 'bob@example.test' }, DEVELOPMENT);
    expect(second).toMatchObject({ isAdmin: false });
  });

  test('concurrent first registrations make one admin', async () => {
    const users = await Promise.all(
      [1, 2, 3, 4].map((n) => register({ email: `user-${n}@example.test` }, DEVELOPMENT)),
    );
    expect(users.filter(({ isAdmin }) => isAdmin)).toHaveLength(1);
  });

  test('the first account in production is not an admin', async () => {
    expect(await register({}, PRODUCTION)).toMatchObject({ isAdmin: false });
  });

  test('the first account is not an admin if ADMIN_EMAILS is set, nor is an unverified address in it', async () => {
    const rules = { ...PRODUCTION, adminEmails: ['boss@example.test'] };
    const [ann, boss] = [
      await register({}, rules),
      await register({ email: 'Boss@Example.Test' }, rules),
    ];
    expect([ann.isAdmin, boss.isAdmin]).toEqual([false, false]);
  });
});
