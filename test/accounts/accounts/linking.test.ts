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

/** Somebody at a provider, by what it says of them. */
interface Comer {
  readonly id: string;
  readonly email: string | undefined;
  readonly verified: boolean;
}

interface Provider {
  readonly kind: 'google' | 'github';
  readonly prefix: 'Idp' | 'Codehost';
  signIn(browser: Browser, comer: Comer, begin?: string): Promise<Landing>;
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
    signIn: (browser, comer, begin) => platform.github(browser, coder(comer), begin),
  },
];

const coder = ({ email, id, verified }: Comer, login = 'a-login'): CodeHostUser => ({
  id: Number(id),
  login,
  emails: email === undefined ? [] : [{ email, primary: true, verified }],
});

const newEmail = () => `${randomUUID()}@example.com`;
const newId = () => String(randomInt(1, 2 ** 40));
const comer = (email: string | undefined, verified = true): Comer => ({
  id: newId(),
  email,
  verified,
});

describe.each(PROVIDERS)('at $kind', ({ kind, prefix, signIn }) => {
  /** Signs in in a new browser: who they are then. */
  async function signedIn(who: Comer) {
    const browser = platform.browser();
    const landed = await signIn(browser, who);
    expect(landed.location).toBe('/dashboard');
    return platform.whoIs(browser);
  }

  async function refused(who: Comer, failure: string) {
    const browser = platform.browser();
    const landed = await signIn(browser, who);
    expect(landed.location).toBe(`/login?error=${prefix}${failure}`);
    expect(await platform.whoIs(browser)).toBeNull();
  }

  const link = (browser: Browser, who: Comer) =>
    signIn(browser, who, `/api/settings/identities/${kind}`);

  test('an id that is linked opens its account, whatever its address is by now', async () => {
    const [first, stranger] = [comer(newEmail()), await platform.registered({ verified: true })];
    const account = await signedIn(first);
    for (const email of [newEmail(), undefined, stranger.email]) {
      expect((await signedIn({ ...first, email }))?.id).toBe(account?.id);
      expect((await signedIn({ ...first, email, verified: false }))?.id).toBe(account?.id);
    }
  });

  test('an id that is disabled opens nothing', async () => {
    const who = comer(newEmail());
    await signedIn(who);
    await platform.asOwner(
      `UPDATE identities SET disabled_at = now() WHERE kind = '${kind}' AND subject = '${who.id}'`,
    );
    await refused(who, 'SignInDisabled');
  });

  test('a new id with a verified address that nobody has gets an account', async () => {
    const who = comer(newEmail());
    expect(await signedIn(who)).toMatchObject({ email: who.email });
  });

  test('a new id gets the account of its verified address, when that is verified too', async () => {
    const owner = await platform.registered({ verified: true });
    expect((await signedIn(comer(owner.email)))?.id).toBe(owner.id);
  });

  test('the same in capitals', async () => {
    const owner = await platform.registered({ verified: true });
    expect((await signedIn(comer(owner.email.toUpperCase())))?.id).toBe(owner.id);
  });

  test('a squatted address gains nothing of what its owner brings', async () => {
    const squatter = await platform.registered();
    await refused(comer(squatter.email), 'LinkRefused');
    const { body } = await squatter.browser.ask('GET', '/api/settings/identities');
    expect(body.identities).toEqual([]);
  });

  test('an address that the provider has given to somebody else opens nothing', async () => {
    const owner = comer(newEmail());
    await signedIn(owner);
    await refused(comer(owner.email), 'LinkRefused');
  });

  test('an address whose mailbox was taken over, as a security event has told, opens no account', async () => {
    const owner = await platform.registered({ verified: true });
    await platform.asOwner(
      `INSERT INTO reset_mail_stops VALUES ('${tokenHash(owner.email)}', true, now())`,
    );
    await refused(comer(owner.email), 'LinkRefused');
  });

  test('an address that the provider has not verified opens no account', async () => {
    const owner = await platform.registered({ verified: true });
    await refused(comer(owner.email, false), 'LinkRefused');
  });

  test('an address that it has not verified, or none, makes no account', async () => {
    await refused(comer(newEmail(), false), 'NoEmail');
    await refused(comer(undefined), 'NoEmail');
  });

  test('an address with letters that lower case turns into ours is another', async () => {
    const owner = await platform.registered({ email: `k${newEmail()}`, verified: true });
    // The sign of Kelvin becomes a k.
    await refused(comer(owner.email.replace(/^k/, '\u212A')), 'NoEmail');
  });

  test("a wallet's address is the wallet's alone", async () => {
    await refused(comer(`0x${randomUUID()}@wallet.service`), 'NoEmail');
  });

  test('the account of the operator is nobody’s', async () => {
    await refused(comer('operator@platform.invalid'), 'LinkRefused');
  });

  test('what somebody links in their session opens their account, whatever its address', async () => {
    const [owner, stranger] = [await platform.registered(), await platform.registered()];
    const who = comer(stranger.email, false);
    const landed = await link(owner.browser, who);
    expect(landed.location).toBe(`/dashboard?linked=${kind}`);
    expect((await signedIn(who))?.id).toBe(owner.id);
    const { body } = await owner.browser.ask('GET', '/api/settings/identities');
    expect(body.identities).toMatchObject([{ kind }]);
  });

  test('an id that an account has is linked to no other', async () => {
    const [who, another] = [comer(newEmail()), await platform.registered()];
    const account = await signedIn(who);
    const landed = await link(another.browser, who);
    expect(landed.location).toBe(`/login?error=${prefix}LinkRefused`);
    expect((await signedIn(who))?.id).toBe(account?.id);
    // Nor again to the same.
    const own = platform.browser();
    await signIn(own, who);
    expect((await link(own, who)).location).toBe(`/login?error=${prefix}LinkRefused`);
  });

  describe('an answer that another browser has asked for', () => {
    /** Begun in one browser, consented to by somebody, and answered in another. */
    async function answeredElsewhere(begun: Browser, answered: Browser, begin: string) {
      const kept = new Map(answered.cookies);
      const landed = await signIn(
        // Asks in the one browser, and brings the answer back in the other.
        Object.assign(Object.create(begun) as Browser, {
          ask: (...asked: Parameters<Browser['ask']>) =>
            (asked[1].includes('/callback') ? answered : begun).ask(...asked),
        }),
        comer(newEmail()),
        begin,
      );
      expect(landed.location).toBe(`/login?error=${prefix}AuthFailed`);
      expect(answered.cookies).toEqual(kept);
    }

    test('signs nobody in', async () => {
      await answeredElsewhere(platform.browser(), platform.browser(), `/api/auth/${kind}`);
    });

    test("links the account of one to no other's", async () => {
      const [attacker, victim] = [await platform.registered(), await platform.registered()];
      const begin = `/api/settings/identities/${kind}`;
      await answeredElsewhere(attacker.browser, victim.browser, begin);
      for (const { browser } of [attacker, victim]) {
        const { body } = await browser.ask('GET', '/api/settings/identities');
        expect(body.identities).toEqual([]);
      }
    });
  });

  test('a link that was begun in one session is not finished in another', async () => {
    const [attacker, victim] = [await platform.registered(), await platform.registered()];
    const session = victim.browser.cookies.get('service-session') ?? '';
    const who = comer(newEmail());
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

  test('linking is not begun by GET, by a foreign page, or by who signed in long ago', async () => {
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

test('a login name that another takes over opens nothing of who had it', async () => {
  const [before, after] = [comer(newEmail()), comer(newEmail())];
  const [one, other] = [platform.browser(), platform.browser()];
  await platform.github(one, coder(before, 'ada'));
  await platform.github(one, coder(before, 'ada-renamed'));
  await platform.github(other, coder(after, 'ada'));
  expect((await platform.whoIs(one))?.email).toBe(before.email);
  expect((await platform.whoIs(other))?.email).toBe(after.email);
});

test.each(['true', 1, null, {}])('email_verified as %j is not verified', async (said) => {
  const [browser, owner] = [platform.browser(), await platform.registered({ verified: true })];
  const person = { email: owner.email, email_verified: said };
  const landed = await platform.google(browser, newId(), person);
  expect(landed.location).toBe('/login?error=IdpLinkRefused');
});
