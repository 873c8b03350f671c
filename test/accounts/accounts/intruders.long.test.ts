// @module-tag attack
import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import { generatePrivateKey } from 'viem/accounts';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  signInByWallet,
  walletIdentity,
} from '../../../src/accounts/accounts/sign-in-by-wallet.js';
import {
  linkIdentity,
  MAX_UNLINKED,
  unlinkIdentity,
} from '../../../src/accounts/accounts/identities.js';
import type { MailKind } from '../../../src/types/mail-kinds.js';
import { verifyEmail } from '../../../src/accounts/accounts/verify-email.js';
import { makeMailToken } from '../../../src/accounts/mail/mail-tokens.js';
import { UnauthorizedError } from '../../../src/lib/errors.js';
import { EventEffects } from '../../../src/accounts/security-events/apply-events.js';
import { EVENT_TYPES } from '../../../src/accounts/security-events/event-types.js';
import { riscEvents } from '../../../src/platform/database/tables/security-events.js';
import { ownWallets } from '../../../src/money/wallets/own-wallets.js';
import { tokenIn } from '../../../dev/accounts/mailbox.js';
import { insertRow } from '../../support/insert-row.js';
import { sendWaitingMails } from '../../support/mails.js';
import { signInPlatform, type SignInPlatform } from '../../support/sign-in.js';
import type { Browser } from '../../support/cookies-browser.js';

let platform: SignInPlatform;
let effects: EventEffects;
beforeAll(async () => {
  platform = await signInPlatform();
  effects = new EventEffects(platform.database.db, platform.dependencies.secrets);
});
afterAll(() => platform?.close());

const GOOGLE = '/api/settings/identities/google';
const GITHUB = '/api/settings/identities/github';
const IDENTITIES = '/api/settings/identities';

const newEmail = () => `${randomUUID()}@example.com`;
const verified = (email: string) => ({ email, email_verified: true });
const coder = (email: string) => ({
  id: randomInt(1, 2 ** 40),
  login: randomUUID(),
  name: 'Ada',
  emails: [{ email, primary: true, verified: true }],
});

/** Reports an account at the identity provider as hijacked, or as recovered. */
async function report(sub: string, what: 'hijacked' | 'recovered', at = new Date()) {
  const id = randomUUID();
  const event =
    what === 'hijacked'
      ? { type: EVENT_TYPES['account-disabled'], sub, reason: 'hijacking' }
      : { type: EVENT_TYPES['account-enabled'], sub };
  await insertRow(platform.database.db.asPlatform(), riscEvents, {
    id,
    jti: id,
    issuer: platform.idp.issuerUrl,
    matching: 'subject',
    events: [event],
    happenedAt: at,
  });
  return (await effects.apply(id)).map(({ effect }) => effect);
}

/** Signs in with an account at the identity provider in a new browser. */
async function byGoogle(sub: string, email: string): Promise<Browser> {
  const browser = platform.browser();
  await platform.google(browser, sub, verified(email));
  return browser;
}

const identitiesOf = async (browser: Browser) =>
  (await browser.ask('GET', IDENTITIES)).body.identities as { id: string; kind: string }[];

async function makeKey(browser: Browser): Promise<string> {
  return (await browser.ask('POST', '/api/keys', { body: { name: 'ci' } })).body.key;
}

const keyWorks = async (key: string) =>
  (
    await fetch(`${platform.urls[0]}/api/wallet/address`, {
      headers: { authorization: `Bearer ${key}` },
    })
  ).status === 200;

const locationBy = async (user: ReturnType<typeof coder>) =>
  (await platform.github(platform.browser(), user)).location;

const passwordWorks = async (email: string, password: string) =>
  (await platform.browser().ask('POST', '/api/auth/login', { body: { email, password } }))
    .status === 200;

describe('an intruder with a hijacked account at the provider', () => {
  let sub: string;
  let email: string;
  let intruder: Browser;
  let userId: string;
  beforeEach(async () => {
    [sub, email] = [randomUUID(), newEmail()];
    intruder = await byGoogle(sub, email);
    userId = (await platform.whoIs(intruder))?.id ?? '';
  });

  test('an intruder loses access with the event, and everything that was added is restored with the account', async () => {
    const [planted, own] = [coder(newEmail()), coder(newEmail())];
    await platform.github(intruder, own, GITHUB);
    await platform.asOwner(`UPDATE identities SET added_by = NULL WHERE user_id = '${userId}'`);
    await platform.github(intruder, planted, GITHUB);
    const key = await makeKey(intruder);
    const password = `planted ${randomUUID()}`;
    const wallet = (
      await intruder.ask('POST', '/api/wallet/walletprov', {
        body: { privateKey: generatePrivateKey() },
      })
    ).body.address;
    await platform.asOwner(
      `INSERT INTO provider_keys (user_id, provider, sealed_key, added_by, created_at)
         SELECT user_id, 'openai', 'sealed', id, now() FROM identities
          WHERE user_id = '${userId}' AND kind = 'google'`,
    );
    const changed = await intruder.ask('POST', '/api/settings/password', {
      body: { newPassword: password, keepKeys: true },
    });
    expect(changed.status).toBe(200);

    expect(await report(sub, 'hijacked')).toEqual(['disabled']);
    expect(await locationBy(planted)).toBe('/login?error=CodehostSignInDisabled');
    expect(await passwordWorks(email, password)).toBe(false);
    expect(await keyWorks(key)).toBe(false);
    expect(await walletsOf()).toEqual([]);
    expect(await ownKeys()).toEqual([{ suspended: true }]);
    const owner = platform.browser();
    await platform.github(owner, own);
    const { keys } = (await owner.ask('GET', '/api/keys')).body;
    expect(keys).toMatchObject([{ name: 'ci', suspended: true }]);
    expect((await owner.ask('GET', '/api/settings')).body.user.hasPassword).toBe(false);
    const exported = await owner.ask('GET', '/api/settings/export');
    expect(exported.body.user).toMatchObject({ isPasswordSuspended: true });
    expect(JSON.stringify(exported.body)).not.toContain(await suspendedHash());

    expect(await report(sub, 'recovered')).toEqual(['enabled']);
    expect(await locationBy(planted)).toBe('/dashboard');
    expect(await passwordWorks(email, password)).toBe(true);
    expect(await keyWorks(key)).toBe(true);
    expect(await walletsOf()).toEqual([wallet.toLowerCase()]);
    expect(await ownKeys()).toEqual([{ suspended: false }]);
  });

  const ownKeys = () =>
    platform.asOwner(
      `SELECT suspended_at IS NOT NULL AS suspended FROM provider_keys WHERE user_id = '${userId}'`,
    );

  const suspendedHash = async () => {
    const [user] = await platform.asOwner(
      `SELECT suspended_password_hash AS hash FROM users WHERE id = '${userId}'`,
    );
    expect(user?.hash).toMatch(/^scrypt\$/);
    return String(user?.hash);
  };
  const walletsOf = () => ownWallets(platform.database.db.asPlatform(), userId);

  test('an intruder loses access that was added by a sign-in method which the intruder had added', async () => {
    const [first, second] = [coder(newEmail()), coder(newEmail())];
    await platform.github(intruder, first, GITHUB);
    const again = platform.browser();
    await platform.github(again, first);
    await platform.github(again, second, GITHUB);
    const key = await makeKey(again);
    await report(sub, 'hijacked');
    expect(await locationBy(second)).toBe('/login?error=CodehostSignInDisabled');
    expect(await keyWorks(key)).toBe(false);
  });

  test('an intruder loses access even after unlinking the hijacked identity', async () => {
    const planted = coder(newEmail());
    await platform.github(intruder, planted, GITHUB);
    const hijacked = (await identitiesOf(intruder)).find(({ kind }) => kind === 'google');
    expect((await intruder.ask('DELETE', `${IDENTITIES}/${hijacked?.id}`)).status).toBe(200);
    expect(await report(sub, 'hijacked')).toEqual(['disabled']);
    expect(await locationBy(planted)).toBe('/login?error=CodehostSignInDisabled');
    expect(await report(sub, 'recovered')).toEqual(['enabled']);
    expect(await locationBy(planted)).toBe('/dashboard');
  });

  test('adds nothing by a request that is in flight during the event', async () => {
    const { database, dependencies } = platform;
    const email = newEmail();
    await intruder.ask('PATCH', '/api/settings', { body: { email } });
    const { body } = await intruder.ask('GET', '/api/auth/sessions');
    const by = { userId, sessionId: body.sessions[0].id };
    const origin = { address: '192.0.2.1', requestId: 'a-request' };
    const token = await database.db
      .asPlatform()
      .transaction((db) => makeMailToken(db, 'verify-email', { userId, email }));
    await report(sub, 'hijacked');
    const verified = verifyEmail(database.db, by, token, origin);
    await expect(verified).rejects.toThrow(UnauthorizedError);
    const imported = dependencies.userWallets.import(
      {
        ...{
          actor: userId,
          userId,
          credential: { sessionId: by.sessionId },
          tenant: database.db.asUser(userId),
        },
        ...{ requestId: 'a-request', idempotencyId: randomUUID() },
      },
      generatePrivateKey(),
    );
    await expect(imported).rejects.toThrow(UnauthorizedError);
  });

  describe('with another address that the intruder has given the account', () => {
    let given: string;
    beforeEach(async () => {
      given = newEmail();
      const asked = await intruder.ask('PATCH', '/api/settings', { body: { email: given } });
      expect(asked.status).toBe(200);
      const body = { token: await mailedToken('change-email') };
      const confirmed = await intruder.ask('POST', '/api/auth/verify-email', { body });
      expect(confirmed.status).toBe(200);
    });

    /** Returns the token of a mail to this address; undefined if no such mail is sent. */
    const mailedToken = async (kind: MailKind) => {
      const mails = await sendWaitingMails(platform.database.db);
      const mail = mails.find((each) => each.kind === kind && each.to === given);
      return mail && tokenIn(mail);
    };

    const resetToken = async () => {
      const body = { email: given };
      await platform.browser().ask('POST', '/api/auth/forgot-password', { body });
      return mailedToken('reset-password');
    };

    test('does not come back by its mailbox, until the account is enabled', async () => {
      await report(sub, 'hijacked');
      expect(await resetToken()).toBeUndefined();
      expect(await locationBy(coder(given))).toBe('/login?error=CodehostLinkRefused');
      await report(sub, 'recovered');
      expect(await resetToken()).toBeDefined();
    });

    test('goes out with what the mailbox has added', async () => {
      const [planted, password] = [coder(given), `planted ${randomUUID()}`];
      expect(await locationBy(planted)).toBe('/dashboard');
      const body = { token: await resetToken(), password };
      const reset = await platform.browser().ask('POST', '/api/auth/reset-password', { body });
      expect(reset.status).toBe(200);
      await report(sub, 'hijacked');
      expect(await locationBy(planted)).toBe('/login?error=CodehostSignInDisabled');
      expect(await passwordWorks(given, password)).toBe(false);
      await report(sub, 'recovered');
      expect(await locationBy(planted)).toBe('/dashboard');
      expect(await passwordWorks(given, password)).toBe(true);
    });

    test('has no hold on an address that the owner has given since', async () => {
      await platform.asOwner(
        `INSERT INTO audit_log (actor, user_id, action, subject)
         VALUES ('${userId}', '${userId}', 'email.change', '${userId}')`,
      );
      await report(sub, 'hijacked');
      expect(await resetToken()).toBeDefined();
    });
  });

  test("leaves what was added earlier, and what other identities' sessions added", async () => {
    const [early, own] = [coder(newEmail()), coder(newEmail())];
    await platform.github(intruder, early, GITHUB);
    await platform.asOwner(
      `UPDATE identities SET created_at = now() - interval '31 days' WHERE user_id = '${userId}'`,
    );
    const owner = platform.browser();
    await platform.github(owner, early);
    await platform.github(owner, own, GITHUB);
    await report(sub, 'hijacked');
    expect(await locationBy(early)).toBe('/dashboard');
    expect(await locationBy(own)).toBe('/dashboard');
  });

  test('the event of an intrusion also ends the keys of the owner, which are not restored', async () => {
    const [own] = [coder(newEmail())];
    await platform.github(intruder, own, GITHUB);
    await platform.asOwner(`UPDATE identities SET added_by = NULL WHERE user_id = '${userId}'`);
    const owner = platform.browser();
    await platform.github(owner, own);
    const key = await makeKey(owner);
    await report(sub, 'hijacked');
    expect(await keyWorks(key)).toBe(false);
    await report(sub, 'recovered');
    expect(await keyWorks(key)).toBe(false);
  });

  test('an event that a later recovery has superseded ends no access', async () => {
    const planted = coder(newEmail());
    await platform.github(intruder, planted, GITHUB);
    await report(sub, 'recovered', new Date(Date.now() + 1_000));
    expect(await report(sub, 'hijacked')).toEqual(['superseded']);
    expect(await locationBy(planted)).toBe('/dashboard');
  });
});

describe('an unlinked identity', () => {
  test('an unlinked identity cannot sign in by its address until a session links it again', async () => {
    const { browser, email } = await platform.registered({ verified: true });
    const sub = randomUUID();
    await platform.google(browser, sub, verified(email), GOOGLE);
    const [linked] = await identitiesOf(browser);
    await browser.ask('DELETE', `${IDENTITIES}/${linked?.id}`);
    const stranger = platform.browser();
    const refused = await platform.google(stranger, sub, verified(email));
    expect(refused.location).toBe('/login?error=IdpLinkRefused');
    expect(await platform.whoIs(stranger)).toBeNull();
    // Neither is it a new account under another address.
    const other = await platform.google(stranger, sub, verified(newEmail()));
    expect(other.location).toBe('/login?error=IdpLinkRefused');

    await platform.google(browser, sub, verified(email), GOOGLE);
    expect((await platform.whoIs(await byGoogle(sub, email)))?.email).toBe(email);
  });

  test('an unlinked identity does not block another identity with the same address', async () => {
    const { browser, email } = await platform.registered({ verified: true });
    await platform.google(browser, randomUUID(), verified(email), GOOGLE);
    const [linked] = await identitiesOf(browser);
    await browser.ask('DELETE', `${IDENTITIES}/${linked?.id}`);
    expect((await platform.whoIs(await byGoogle(randomUUID(), email)))?.email).toBe(email);
  });

  test('an unlinked identity is forgotten only by a new link, so that an account remembers a bounded number', async () => {
    const { browser, id: userId } = await platform.registered();
    await platform.github(browser, coder(newEmail()), GITHUB);
    await platform.asOwner(
      `INSERT INTO unlinked_identities (id, user_id, kind, issuer, subject, label, linked_at)
       SELECT gen_random_uuid()::text, '${userId}', 'wallet', 'eip155', gen_random_uuid()::text, 'x', now()
         FROM generate_series(1, ${MAX_UNLINKED})`,
    );
    const [linked] = await identitiesOf(browser);
    const refused = await browser.ask('DELETE', `${IDENTITIES}/${linked?.id}`);
    expect([refused.status, refused.body.limit]).toEqual([409, MAX_UNLINKED]);
    expect(await identitiesOf(browser)).toHaveLength(1);
  });

  test('an unlinked identity is remembered for wallets', async () => {
    const { browser, id: userId } = await platform.registered();
    const { database, dependencies } = platform;
    const store = { database: database.db, secrets: dependencies.secrets };
    const origin = { address: '192.0.2.1', requestId: 'a-request' };
    const address = `0x${randomBytes(20).toString('hex')}`;
    const { body } = await browser.ask('GET', '/api/auth/sessions');
    const by = { userId, sessionId: body.sessions[0].id };
    const { id } = await linkIdentity(store, by, walletIdentity(address), origin);
    await unlinkIdentity(database.db, by, id, origin);
    const settings = { adminEmails: [], firstIsAdmin: false };
    await expect(signInByWallet({ ...store, settings }, address, origin)).rejects.toMatchObject({
      failure: 'LinkRefused',
    });
  });
});

describe('mails to the owner', () => {
  test('a mail for each new key and each way to sign in that is added or removed', async () => {
    const { browser, email } = await platform.registered({ verified: true });
    const kinds = async () =>
      (await sendWaitingMails(platform.database.db))
        .filter(({ to }) => to === email)
        .map(({ kind }) => kind);
    for (let made = 0; made < 7; made += 1) await makeKey(browser);
    expect(await kinds()).toEqual(Array(7).fill('key-added'));
    await platform.github(browser, coder(newEmail()), GITHUB);
    expect(await kinds()).toEqual(['sign-in-added']);
    const [linked] = await identitiesOf(browser);
    await browser.ask('DELETE', `${IDENTITIES}/${linked?.id}`);
    expect(await kinds()).toEqual(['sign-in-removed']);
    // An automatic link by the address.
    await byGoogle(randomUUID(), email);
    expect(await kinds()).toEqual(['sign-in-added']);
  });

  test('a mail for a first password and for a linked wallet', async () => {
    const email = newEmail();
    const browser = await byGoogle(randomUUID(), email);
    const kinds = async () =>
      (await sendWaitingMails(platform.database.db))
        .filter(({ to }) => to === email)
        .map(({ kind }) => kind);
    const { database, dependencies } = platform;
    const userId = (await platform.whoIs(browser))?.id ?? '';
    const { body } = await browser.ask('GET', '/api/auth/sessions');
    const by = { userId, sessionId: body.sessions[0].id };
    const store = { database: database.db, secrets: dependencies.secrets };
    const wallet = walletIdentity(`0x${randomBytes(20).toString('hex')}`);
    await linkIdentity(store, by, wallet, { address: '192.0.2.1', requestId: 'a-request' });
    expect(await kinds()).toEqual(['sign-in-added']);
    const { status } = await browser.ask('POST', '/api/settings/password', {
      body: { newPassword: 'correct horse battery' },
    });
    expect([status, await kinds()]).toEqual([200, ['sign-in-added']]);
  });

  test('no mail is sent to an unverified address, and none for a registration', async () => {
    const { browser, email } = await platform.registered();
    await makeKey(browser);
    const fresh = newEmail();
    await byGoogle(randomUUID(), fresh);
    const mails = await sendWaitingMails(platform.database.db);
    expect(mails.filter(({ to }) => [email, fresh].includes(to))).toEqual([]);
  });
});
