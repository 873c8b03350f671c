// @module-tag attack
import { randomInt, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tokenHash } from '../../../src/platform/secrets/token-hash.js';
import type { CodeHostUser } from '../../../dev/accounts/code-host.js';
import type { Browser } from '../../support/cookies-browser.js';
import { signInPlatform, type Landing, type SignInPlatform } from '../../support/sign-in.js';

let platform: SignInPlatform;

beforeAll(async () => {
  platform = await signInPlatform();
});
afterAll(() => platform?.close());

/** A user at a provider, as the provider describes the account. */
interface Visitor {
  readonly id: string;
  readonly email: string | undefined;
  readonly verified: boolean;
}

interface Provider {
  readonly kind: 'google' | 'github';
  readonly prefix: 'Idp' | 'Codehost';
  signIn(browser: Browser, visitor: Visitor, begin?: string): Promise<Landing>;
}

const PROVIDERS: readonly Provider[] = [
  {
    kind: 'google',
    prefix: 'Idp',
    signIn: (browser, { email, id, verified }, begin) =>
      platform.google(browser, id, { email, email_verified: verified }, begin),
  },
  {
    kind: 'github',
    prefix: 'Codehost',
    signIn: (browser, visitor, begin) => platform.github(browser, coder(visitor), begin),
  },
];

const coder = ({ email, id, verified }: Visitor, login = 'a-login'): CodeHostUser => ({
  id: Number(id),
  login,
  emails: email === undefined ? [] : [{ email, primary: true, verified }],
});

const newEmail = () => `${randomUUID()}@example.com`;
const newId = () => String(randomInt(1, 2 ** 40));
const visitor = (email: string | undefined, verified = true): Visitor => ({
  id: newId(),
  email,
  verified,
});

describe.each(PROVIDERS)('sign-in and linking at $kind', ({ kind, prefix, signIn }) => {
  /** Signs in with a new browser and returns the session's user. */
  async function signedIn(who: Visitor) {
    const browser = platform.browser();
    const landed = await signIn(browser, who);
    expect(landed.location).toBe('/dashboard');
    return platform.whoIs(browser);
  }

  async function refused(who: Visitor, failure: string) {
    const browser = platform.browser();
    const landed = await signIn(browser, who);
    expect(landed.location).toBe(`/login?error=${prefix}${failure}`);
    expect(await platform.whoIs(browser)).toBeNull();
  }

  const link = (browser: Browser, who: Visitor) =>
    signIn(browser, who, `/api/settings/identities/${kind}`);

  test('a linked id signs in to its account, regardless of its current email address', async () => {
    const [first, stranger] = [visitor(newEmail()), await platform.registered({ verified: true })];
    const account = await signedIn(first);
    for (const email of [newEmail(), undefined, stranger.email]) {
      expect((await signedIn({ ...first, email }))?.id).toBe(account?.id);
      expect((await signedIn({ ...first, email, verified: false }))?.id).toBe(account?.id);
    }
  });

  test('a disabled id cannot be used to sign in', async () => {
    const who = visitor(newEmail());
    await signedIn(who);
    await platform.asOwner(
      `UPDATE identities SET disabled_at = now() WHERE kind = '${kind}' AND subject = '${who.id}'`,
    );
    await refused(who, 'SignInDisabled');
  });

  test('a new id with a verified address of no account gets a new account', async () => {
    const who = visitor(newEmail());
    expect(await signedIn(who)).toMatchObject({ email: who.email });
  });

  test('a new id with a verified address signs in to the account that has verified the same address', async () => {
    const owner = await platform.registered({ verified: true });
    expect((await signedIn(visitor(owner.email)))?.id).toBe(owner.id);
  });

  test('a new id signs in by its verified address in upper case', async () => {
    const owner = await platform.registered({ verified: true });
    expect((await signedIn(visitor(owner.email.toUpperCase())))?.id).toBe(owner.id);
  });

  test('a provider sign-in is not linked to an account with the same unverified address', async () => {
    const squatter = await platform.registered();
    await refused(visitor(squatter.email), 'LinkRefused');
    const { body } = await squatter.browser.ask('GET', '/api/settings/identities');
    expect(body.identities).toEqual([]);
  });

  test('a new id cannot sign in with an address that is linked to an earlier id', async () => {
    const owner = visitor(newEmail());
    await signedIn(owner);
    await refused(visitor(owner.email), 'LinkRefused');
  });

  test('an address whose mailbox a security event reports as hijacked signs in to no account', async () => {
    const owner = await platform.registered({ verified: true });
    await platform.asOwner(
      `INSERT INTO reset_mail_stops VALUES ('${tokenHash(owner.email)}', true, now())`,
    );
    await refused(visitor(owner.email), 'LinkRefused');
  });

  test('an address that the provider has not verified signs in to no account', async () => {
    const owner = await platform.registered({ verified: true });
    await refused(visitor(owner.email, false), 'LinkRefused');
  });

  test('an id with an unverified address, or without one, gets no account', async () => {
    await refused(visitor(newEmail(), false), 'NoEmail');
    await refused(visitor(undefined), 'NoEmail');
  });

  test('an address with a letter that lower-cases to ASCII does not match the ASCII address', async () => {
    const owner = await platform.registered({ email: `k${newEmail()}`, verified: true });
    // The Kelvin sign lower-cases to k.
    await refused(visitor(owner.email.replace(/^k/, '\u212A')), 'NoEmail');
  });

  test('the address of a wallet account cannot be used at a provider', async () => {
    await refused(visitor(`0x${randomUUID()}@wallet.service`), 'NoEmail');
  });

  test("the operator's address signs in to no account", async () => {
    await refused(visitor('operator@platform.invalid'), 'LinkRefused');
  });

  test('an id that was linked in a session signs in to that account, regardless of its address', async () => {
    const [owner, stranger] = [await platform.registered(), await platform.registered()];
    const who = visitor(stranger.email, false);
    const landed = await link(owner.browser, who);
    expect(landed.location).toBe(`/dashboard?linked=${kind}`);
    expect((await signedIn(who))?.id).toBe(owner.id);
    const { body } = await owner.browser.ask('GET', '/api/settings/identities');
    expect(body.identities).toMatchObject([{ kind }]);
  });

  test('an unlinked id cannot be used to sign in until a session links it again', async () => {
    const [owner, elsewhere] = [
      await platform.registered({ verified: true }),
      await platform.registered(),
    ];
    const who = visitor(owner.email);
    await link(owner.browser, who);
    const { body } = await owner.browser.ask('GET', '/api/settings/identities');
    const unlinked = await owner.browser.ask(
      'DELETE',
      `/api/settings/identities/${body.identities[0].id}`,
    );
    expect(unlinked.status).toBe(200);
    for (const email of [owner.email, newEmail()]) await refused({ ...who, email }, 'LinkRefused');
    await link(elsewhere.browser, who);
    expect((await signedIn(who))?.id).toBe(elsewhere.id);
  });

  test('an id that is linked to an account cannot be linked again', async () => {
    const [who, another] = [visitor(newEmail()), await platform.registered()];
    const account = await signedIn(who);
    const landed = await link(another.browser, who);
    expect(landed.location).toBe(`/login?error=${prefix}LinkRefused`);
    expect((await signedIn(who))?.id).toBe(account?.id);
    // Nor can the id be linked to its own account twice.
    const own = platform.browser();
    await signIn(own, who);
    expect((await link(own, who)).location).toBe(`/login?error=${prefix}LinkRefused`);
  });

  describe("a provider's answer that arrives in a different browser", () => {
    /** Begins a sign-in in one browser and delivers the provider's answer to another. */
    async function answeredElsewhere(begun: Browser, answered: Browser, begin: string) {
      const kept = new Map(answered.cookies);
      const landed = await signIn(
        // Begins in one browser and calls back in another.
        Object.assign(Object.create(begun) as Browser, {
          ask: (...asked: Parameters<Browser['ask']>) =>
            (asked[1].includes('/callback') ? answered : begun).ask(...asked),
        }),
        visitor(newEmail()),
        begin,
      );
      expect(landed.location).toBe(`/login?error=${prefix}AuthFailed`);
      expect(answered.cookies).toEqual(kept);
    }

    test("a provider's answer that arrives in a different browser opens no session", async () => {
      await answeredElsewhere(platform.browser(), platform.browser(), `/api/auth/${kind}`);
    });

    test("a provider's answer that arrives in a different browser links no account", async () => {
      const [attacker, victim] = [await platform.registered(), await platform.registered()];
      const begin = `/api/settings/identities/${kind}`;
      await answeredElsewhere(attacker.browser, victim.browser, begin);
      for (const { browser } of [attacker, victim]) {
        const { body } = await browser.ask('GET', '/api/settings/identities');
        expect(body.identities).toEqual([]);
      }
    });
  });

  test('a link begun in one session cannot be completed in another', async () => {
    const [attacker, victim] = [await platform.registered(), await platform.registered()];
    const session = victim.browser.cookies.get('service-session') ?? '';
    const who = visitor(newEmail());
    const landed = await signIn(
      Object.assign(Object.create(attacker.browser) as Browser, {
        ask: (...asked: Parameters<Browser['ask']>) => {
          if (asked[1].includes('/callback'))
            attacker.browser.cookies.set('service-session', session);
          return attacker.browser.ask(...asked);
        },
      }),
      who,
      `/api/settings/identities/${kind}`,
    );
    expect(landed.location).toBe(`/login?error=${prefix}AuthFailed`);
    const { body } = await victim.browser.ask('GET', '/api/settings/identities');
    expect(body.identities).toEqual([]);
  });

  test('linking cannot be begun by GET, from another origin, or in a session older than ten minutes', async () => {
    const owner = await platform.registered();
    const path = `/api/settings/identities/${kind}`;
    expect((await owner.browser.ask('GET', path)).status).toBe(405);
    const foreign = { headers: { origin: 'https://elsewhere.example' } };
    expect((await owner.browser.ask('POST', path, foreign)).status).toBe(403);
    await platform.asOwner(
      `UPDATE sessions SET created_at = now() - interval '11 minutes' WHERE user_id = '${owner.id}'`,
    );
    const stale = await owner.browser.ask('POST', path);
    expect([stale.status, stale.body.code]).toEqual([403, 'REAUTHENTICATION_REQUIRED']);
  });
});

test("a login name that passes to another user does not sign in to the former user's account", async () => {
  const [before, after] = [visitor(newEmail()), visitor(newEmail())];
  const [one, other] = [platform.browser(), platform.browser()];
  await platform.github(one, coder(before, 'ada'));
  await platform.github(one, coder(before, 'ada-renamed'));
  await platform.github(other, coder(after, 'ada'));
  expect((await platform.whoIs(one))?.email).toBe(before.email);
  expect((await platform.whoIs(other))?.email).toBe(after.email);
});

test.each(['true', 1, null, {}])('email_verified of %j counts as unverified', async (said) => {
  const [browser, owner] = [platform.browser(), await platform.registered({ verified: true })];
  const person = { email: owner.email, email_verified: said };
  const landed = await platform.google(browser, newId(), person);
  expect(landed.location).toBe('/login?error=IdpLinkRefused');
});
