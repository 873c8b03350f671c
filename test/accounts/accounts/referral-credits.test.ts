import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { AccountDeletions } from '../../../src/accounts/accounts/account-deletions.js';
import { changeProfile, getProfile } from '../../../src/accounts/accounts/profile.js';
import {
  creditReferral,
  MAX_REFERRALS,
  REFERRAL_AMOUNT,
  takeBackReferralCredits,
} from '../../../src/accounts/accounts/referral-credits.js';
import { registerAccount } from '../../../src/accounts/accounts/register.js';
import { resetPassword } from '../../../src/accounts/accounts/reset-password.js';
import { addSession } from '../../../src/accounts/accounts/sessions.js';
import { verifyEmail } from '../../../src/accounts/accounts/verify-email.js';
import { removeAgentsOf } from '../../../src/agents/lifecycle/remove-agents-of.js';
import { makeMailToken } from '../../../src/accounts/mail/mail-tokens.js';
import { balanceOf, creditsOf, grantedOf } from '../../../src/money/ledger/ledger.js';
import { checkLedger, LEDGER_CHECKS } from '../../../src/money/ledger-check/check-ledger.js';
import { releaseExpiredHolds } from '../../../src/money/ledger/release-expired-holds.js';
import { networksOf } from '../../../src/platform/http/client-networks.js';
import { ONE } from '../../../src/types/money.js';
import { Database } from '../../../src/platform/database/database.js';
import { queryRows } from '../../platform/database/catalog.js';
import { newUser, testDatabase, type TestDatabase } from '../../support/postgres.js';

const attack = { tags: 'attack' };
const ORIGIN = { address: '192.0.2.1', requestId: 'request' };
const AT_ONCE = 50;

let database: TestDatabase;
let wide: Database;

beforeAll(async () => {
  database = await testDatabase();
  wide = new Database(database.url, { maxConnections: 20 });
});
beforeEach(() =>
  owner(
    `TRUNCATE ledger_holds, ledger_transfers, ledger_accounts, pending_notifications;
     INSERT INTO ledger_accounts (name, currency) VALUES ('referrals', 'usd')`,
  ),
);
afterEach(async () => {
  expect((await checkLedger(database.db, LEDGER_CHECKS)).differences).toEqual([]);
});
afterAll(async () => {
  await wide?.close();
  await database?.close();
});

const owner = <Row extends object>(sql: string) => queryRows<Row>(database.ownerUrl, sql);

const newEmail = () => `${randomUUID()}@example.test`;

interface Account {
  readonly id: string;
  readonly email: string;
}

/** Registers an account, with the code of a referrer if there is one. */
async function register(referrer?: Account, creditsGrantedADay = 1_000n * ONE): Promise<Account> {
  return registerAccount(
    wide,
    {
      email: newEmail(),
      password: 'correct horse',
      from: networksOf('192.0.2.1'),
      origin: ORIGIN,
      ...(referrer && { referralCode: await codeOf(referrer) }),
    },
    { firstIsAdmin: false, adminEmails: [], creditsGrantedADay },
  );
}

async function codeOf({ id }: Account): Promise<string> {
  const [row] = await owner<{ code: string }>(
    `SELECT referral_code AS code FROM users WHERE id = '${id}'`,
  );
  return row?.code ?? '';
}

const granted = ({ id }: Pick<Account, 'id'>) =>
  balanceOf(database.db.asPlatform(), grantedOf(id), 'usd');
const creditedCount = async (accounts: readonly Pick<Account, 'id'>[]) => {
  const balances = await Promise.all(accounts.map(granted));
  return balances.filter(({ balance }) => balance === REFERRAL_AMOUNT).length;
};

const PENDING = { balance: REFERRAL_AMOUNT, held: REFERRAL_AMOUNT };
const SPENDABLE = { balance: REFERRAL_AMOUNT, held: 0n };
const NOTHING = { balance: 0n, held: 0n };

const tokenFor = (kind: 'verify-email' | 'reset-password', { email, id: userId }: Account) =>
  database.db.asPlatform().transaction((db) => makeMailToken(db, kind, { userId, email }));

/** Signs an account in. */
async function by({ id: userId }: Account) {
  const sessionId = randomUUID();
  const place = { ...ORIGIN, userAgent: undefined, sessionId };
  await database.db.asPlatform().transaction((db) => addSession(db, userId, 'password', place));
  return { userId, sessionId };
}

/** Every way in which the address of a new account becomes verified. */
const VERIFICATIONS = {
  async 'the link of the registration'(account: Account) {
    await verifyEmail(
      database.db,
      await by(account),
      await tokenFor('verify-email', account),
      ORIGIN,
    );
  },
  async 'the link to another address'(account: Account) {
    const email = newEmail();
    await changeProfile(database.db, account.id, { email }, ORIGIN);
    const token = await tokenFor('verify-email', { ...account, email });
    await verifyEmail(database.db, await by(account), token, ORIGIN);
  },
  async 'a reset of the password'(account: Account) {
    const token = await tokenFor('reset-password', account);
    const asked = { token, password: 'another horse', origin: ORIGIN };
    await resetPassword(database.db, asked, removeAgentsOf);
  },
};

describe('credits of a referral', () => {
  test.each(Object.entries(VERIFICATIONS))(
    'both sides get the credits at once and can spend them after %s',
    attack,
    async (_, verify) => {
      const ann = await register();
      const bob = await register(ann);
      const eve = await register(ann);
      for (const { id } of [bob, eve]) {
        expect(await getProfile(database.db.asUser(id), id)).toMatchObject({ credits: '1.000000' });
      }
      expect(await getProfile(database.db.asUser(ann.id), ann.id)).toMatchObject({
        credits: '2.000000',
      });
      expect([await granted(bob), await granted(eve)]).toEqual([PENDING, PENDING]);
      await verify(bob);
      expect([await granted(bob), await granted(eve)]).toEqual([SPENDABLE, PENDING]);
      expect(await granted(ann)).toEqual({ balance: 2n * REFERRAL_AMOUNT, held: REFERRAL_AMOUNT });
    },
  );

  test('no credits become spendable by the verification of the referrer', attack, async () => {
    const ann = await register();
    const bob = await register(ann);
    await VERIFICATIONS['the link of the registration'](ann);
    expect([await granted(ann), await granted(bob)]).toEqual([PENDING, PENDING]);
  });

  test('reserved credits do not become spendable with time', attack, async () => {
    const ann = await register();
    const bob = await register(ann);
    await owner(`UPDATE ledger_holds SET created_at = now() - interval '10 years'`);
    expect(await releaseExpiredHolds(database.db)).toBe(0);
    expect([await granted(ann), await granted(bob)]).toEqual([PENDING, PENDING]);
  });

  test('a second verification changes nothing', async () => {
    const ann = await register();
    const bob = await register(ann);
    await VERIFICATIONS['the link of the registration'](bob);
    await VERIFICATIONS['the link to another address'](bob);
    expect([await granted(ann), await granted(bob)]).toEqual([SPENDABLE, SPENDABLE]);
  });

  test('granted credits never count as bought', async () => {
    const ann = await register();
    const bob = await register(ann);
    for (const { id } of [ann, bob]) {
      expect(await balanceOf(database.db.asPlatform(), creditsOf(id), 'usd')).toEqual(NOTHING);
    }
  });
});

describe('deletion of an account', () => {
  const deleted = async ({ id }: Account) => {
    await owner(`INSERT INTO account_deletions (user_id, request_id) VALUES ('${id}', 'x')`);
    await takeBackReferralCredits(database.db, id);
    await takeBackReferralCredits(database.db, id);
    await new AccountDeletions(database.db, []).erase(id);
  };

  test('the credits of a deleted account go back from both sides if its address was never verified', async () => {
    const ann = await register();
    const [bob, eve] = [await register(ann), await register(ann)];
    await deleted(bob);
    expect(await granted(bob)).toEqual(NOTHING);
    expect(await granted(ann)).toEqual(PENDING);
    await VERIFICATIONS['the link of the registration'](eve);
    expect(await granted(ann)).toEqual(SPENDABLE);
  });

  test('the credits of a deleted account stay with its referrer if its address was verified', async () => {
    const ann = await register();
    const bob = await register(ann);
    await VERIFICATIONS['the link of the registration'](bob);
    await deleted(bob);
    expect([await granted(bob), await granted(ann)]).toEqual([SPENDABLE, SPENDABLE]);
  });

  test('the credits of a new account become spendable although its referrer is deleted', async () => {
    const ann = await register();
    const bob = await register(ann);
    await deleted(ann);
    await VERIFICATIONS['the link of the registration'](bob);
    expect(await granted(bob)).toEqual(SPENDABLE);
  });
});

describe('bounds of referral credits', attack, () => {
  /** Credits referrals of new accounts concurrently; registrations would wait for their passwords' hashes. */
  const referMany = async (referrers: readonly Account[], creditsGrantedADay = 1_000n * ONE) => {
    const referrals = await Promise.all(
      referrers.map(async ({ id: referrerId }) => ({
        referrerId,
        userId: await newUser(database),
      })),
    );
    const credited = referrals.map((referral) =>
      wide.asPlatform().transaction((db) => creditReferral(db, referral, { creditsGrantedADay })),
    );
    await Promise.all(credited);
    return referrals.map(({ userId: id }) => ({ id }));
  };
  const notices = () =>
    owner<{ id: string; event: object }>('SELECT id, event FROM pending_notifications');

  test('a referrer is credited for ten of fifty concurrent accounts within 30 days', async () => {
    const ann = await register();
    const accounts = await referMany(Array<Account>(AT_ONCE).fill(ann));
    expect(accounts).toHaveLength(AT_ONCE);
    expect(await creditedCount(accounts)).toBe(MAX_REFERRALS);
    expect((await granted(ann)).balance).toBe(BigInt(MAX_REFERRALS) * REFERRAL_AMOUNT);
    expect(await notices()).toEqual([]);
  });

  test('a referrer is credited again after 30 days, and for having been referred besides', async () => {
    const zoe = await register();
    const ann = await register(zoe);
    await referMany(Array<Account>(MAX_REFERRALS).fill(ann));
    expect((await granted(ann)).balance).toBe(11n * REFERRAL_AMOUNT);
    await owner(`UPDATE ledger_transfers SET created_at = now() - interval '29 days 23 hours'`);
    expect(await granted(await register(ann))).toEqual(NOTHING);
    await owner(`UPDATE ledger_transfers SET created_at = now() - interval '30 days 1 minute'`);
    expect(await granted(await register(ann))).toEqual(PENDING);
  });

  test('deleting referred accounts makes no room for others', async () => {
    const ann = await register();
    for (const { id } of await referMany(Array<Account>(MAX_REFERRALS).fill(ann))) {
      await owner(`INSERT INTO account_deletions (user_id, request_id) VALUES ('${id}', 'x')`);
      await takeBackReferralCredits(database.db, id);
      await new AccountDeletions(database.db, []).erase(id);
    }
    expect(await granted(await register(ann))).toEqual(NOTHING);
    expect(await granted(ann)).toEqual(NOTHING);
  });

  test('fifty concurrent accounts together are granted the amount of a day, with one notice', async () => {
    const referrers = await Promise.all(Array.from({ length: 10 }, () => register()));
    const fifty = Array.from({ length: AT_ONCE }, (_, n) => referrers[n % 10] ?? fail());
    // An amount for ten referrals, and a rest that covers one side of another.
    const limit = 21n * ONE;
    const accounts = await referMany(fifty, limit);
    expect(await creditedCount(accounts)).toBe(10);
    const [given] = await owner<{ sum: string }>(
      `SELECT sum(amount)::text AS sum FROM ledger_transfers WHERE debit = 'referrals'`,
    );
    expect(given?.sum).toBe(String(20n * ONE));
    const [notice, ...others] = await notices();
    expect([notice?.event, others]).toEqual([
      {
        event: 'granted_credits_used_up',
        day: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
        limit: '21.000000',
      },
      [],
    ]);
  });

  test('the amount of a day is granted again on the next UTC day', async () => {
    const ann = await register();
    await register(ann, 2n * ONE);
    expect(await granted(await register(ann, 2n * ONE))).toEqual(NOTHING);
    await owner(
      `UPDATE ledger_transfers
          SET created_at = date_trunc('day', now(), 'UTC') - interval '1 second'`,
    );
    expect(await granted(await register(ann, 2n * ONE))).toEqual(PENDING);
  });

  test('revoked credits count as granted on their day', async () => {
    const ann = await register();
    const bob = await register(ann, 2n * ONE);
    await takeBackReferralCredits(database.db, bob.id);
    expect(await granted(await register(ann, 2n * ONE))).toEqual(NOTHING);
  });

  test('an amount of zero grants nothing and sends no notification', async () => {
    const bob = await register(await register(), 0n);
    expect([await granted(bob), await notices()]).toEqual([NOTHING, []]);
  });
});

function fail(): never {
  throw new RangeError('there is no such referrer');
}
