import { randomInt, randomUUID } from 'node:crypto';
import {
  exportJWK,
  exportSPKI,
  generateKeyPair,
  SignJWT,
  UnsecuredJWT,
  type JWTPayload,
} from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Listening } from '../../../api/http/server.js';
import type { WebDependencies } from '../../../api/web/dependencies.js';
import { createWeb } from '../../../api/web/web.js';
import { startIdentityProvider } from '../../../dev/accounts/identity-provider.js';
import { IdentityProvider } from '../../../src/accounts/sign-in/identity-provider/identity-provider.js';
import { databaseAlone } from '../../support/dependencies.js';
import { Browser } from '../../support/cookies-browser.js';
import { signInPlatform, type SignInPlatform } from '../../support/sign-in.js';

let platform: SignInPlatform;

beforeAll(async () => {
  platform = await signInPlatform();
});
afterAll(() => platform?.close());
afterEach(async () => {
  vi.useRealTimers();
  const honest = { idToken: undefined, down: undefined, discovery: undefined, keys: undefined };
  Object.assign(platform.idp.forging, honest);
  platform.codeHost.down = undefined;
  for (const listening of others.splice(0)) await listening.close();
});

const others: Listening[] = [];

/** Starts a web listener with different dependencies and returns a factory for its browsers. */
async function platformWith(parts: Partial<WebDependencies>): Promise<() => Browser> {
  const listening = await createWeb({ ...platform.dependencies, ...parts }).listen('127.0.0.1', 0);
  others.push(listening);
  return () => new Browser(listening.url);
}

/** Starts a web listener that has not fetched the identity provider's configuration yet. */
function secondPlatform(issuerUrl = platform.idp.issuerUrl): Promise<() => Browser> {
  const { identityProvider } = platform.dependencies.settings;
  const callback = 'http://platform.test/api/auth/google/callback';
  const settings = { ...identityProvider, issuerUrl };
  const google = new IdentityProvider(settings, platform.idp.clientId, callback);
  return platformWith({ providers: { ...platform.dependencies.providers, google } });
}

/** Copies the browser's cookies to a browser of a different listener. */
function at(there: () => Browser, { cookies }: Browser): Browser {
  const browser = there();
  for (const [name, value] of cookies) browser.cookies.set(name, value);
  return browser;
}

/** Sets the clock ahead by this much and freezes it. */
const passed = (ms: number) => {
  const now = Date.now() + ms;
  if (vi.isFakeTimers()) vi.setSystemTime(now);
  else vi.useFakeTimers({ toFake: ['Date'], now });
};

const attack = { tags: 'attack' };

const newEmail = () => `${randomUUID()}@example.com`;
const verified = (email: string, name?: string) => ({ email, email_verified: true, name });

/** Describes a new user at the code host. */
const coder = (email: string, { login = randomUUID(), isVerified = true } = {}) => ({
  id: randomInt(1, 2 ** 40),
  login,
  name: 'Ada Lovelace',
  emails: [
    { email: `other-${email}`, primary: false, verified: true },
    { email, primary: true, verified: isVerified },
  ],
});

const session = /^service-session=[\w-]{43}; Path=\/; Max-Age=2592000; HttpOnly; SameSite=Lax$/;

describe('signing in at the identity provider', () => {
  test("redirects to the identity provider's consent screen and requests offline access", async () => {
    const begun = await platform.browser().ask('GET', '/api/auth/google');
    expect(begun.status).toBe(302);
    const url = new URL(begun.location);
    expect(url.origin).toBe(platform.idp.issuerUrl);
    expect(Object.fromEntries(url.searchParams)).toEqual({
      client_id: platform.idp.clientId,
      redirect_uri: 'http://platform.test/api/auth/google/callback',
      response_type: 'code',
      scope: 'openid email profile offline_access',
      access_type: 'offline',
      prompt: 'consent',
      state: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: 'S256',
    });
  });

  test('sign-in at the identity provider creates a session and an account with a verified address and no password', async () => {
    const [browser, email] = [platform.browser(), newEmail()];
    const landed = await platform.google(browser, randomUUID(), verified(email, 'Ada'));
    expect([landed.status, landed.location]).toEqual([302, '/dashboard']);
    expect(landed.headers.getSetCookie()[0]).toMatch(session);
    const user = await platform.whoIs(browser);
    expect(user).toMatchObject({ email, name: 'Ada', isAdmin: false });
    const [row] = await platform.asOwner(`SELECT * FROM users WHERE id = '${user?.id}'`);
    expect(row).toMatchObject({ password_hash: null, email_verified_at: expect.any(Date) });
    const { body } = await browser.ask('GET', '/api/auth/sessions');
    expect(body.sessions).toMatchObject([{ method: 'google', current: true }]);
    expect([...browser.cookies.keys()]).toEqual(['service-session']);
  });
});

describe('signing in at the code host', () => {
  test('sign-in at the code host creates an account and a session', async () => {
    const [browser, email] = [platform.browser(), newEmail()];
    const landed = await platform.github(browser, coder(email));
    expect([landed.status, landed.location]).toEqual([302, '/dashboard']);
    expect(await platform.whoIs(browser)).toMatchObject({ email, name: 'Ada Lovelace' });
    const { body } = await browser.ask('GET', '/api/auth/sessions');
    expect(body.sessions).toMatchObject([{ method: 'github', current: true }]);
  });
});

describe('a forged ID token', attack, () => {
  const now = () => Math.floor(Date.now() / 1000);
  const signed = (claims: JWTPayload, kid?: string) =>
    new SignJWT(claims)
      .setProtectedHeader({ alg: 'RS256', kid: kid ?? platform.idp.key.kid })
      .sign(platform.idp.key.privateKey);
  const byHmac = (claims: JWTPayload, secret: string) =>
    new SignJWT(claims)
      .setProtectedHeader({ alg: 'HS256', kid: platform.idp.key.kid })
      .sign(new TextEncoder().encode(secret));

  const FORGED: Readonly<Record<string, (claims: JWTPayload) => Promise<string> | string>> = {
    'by nobody': (claims) => new UnsecuredJWT(claims).encode(),
    'by the public key': async (claims) =>
      byHmac(claims, await exportSPKI(platform.idp.key.publicKey)),
    "by the client's secret": (claims) => byHmac(claims, platform.idp.clientSecret),
    'by another key of the same name': async (claims) =>
      new SignJWT(claims)
        .setProtectedHeader({ alg: 'RS256', kid: platform.idp.key.kid })
        .sign((await generateKeyPair('RS256')).privateKey),
    'by a key that is not known': (claims) => signed(claims, 'unknown'),
    'by another issuer': (claims) => signed({ ...claims, iss: 'https://elsewhere.example' }),
    'for another audience': (claims) => signed({ ...claims, aud: 'another-client' }),
    'for several, and not us': (claims) =>
      signed({ ...claims, aud: [platform.idp.clientId, 'x'], azp: 'x' }),
    'with another nonce': (claims) => signed({ ...claims, nonce: 'another' }),
    'without a nonce': ({ nonce, ...claims }) => signed(claims),
    'past its expiry': (claims) => signed({ ...claims, exp: now() - 60 }),
    'not valid before a future time': (claims) => signed({ ...claims, nbf: now() + 600 }),
    'without a subject': ({ sub, ...claims }) => signed(claims),
    'and not even a token': () => 'x.y.z',
  };

  test('an unmodified ID token signs in, so the forgeries below fail only by their change', async () => {
    platform.idp.forging.idToken = (claims) => signed(claims);
    const landed = await platform.google(platform.browser(), randomUUID(), verified(newEmail()));
    expect(landed.location).toBe('/dashboard');
  });

  test.each(Object.keys(FORGED))('rejects a forged ID token: %s', async (name) => {
    const [browser, email] = [platform.browser(), newEmail()];
    platform.idp.forging.idToken = FORGED[name];
    const landed = await platform.google(browser, randomUUID(), verified(email));
    expect(landed.location).toBe('/login?error=IdpTokenFailed');
    expect(await platform.whoIs(browser)).toBeNull();
    expect(await platform.asOwner(`SELECT id FROM users WHERE email = '${email}'`)).toEqual([]);
  });
});

describe("the provider's callback", () => {
  test.each([
    ['no code', ''],
    ['the error of the provider', '&error=access_denied'],
    ['a code and an error', '&code=x&error=access_denied'],
    ['two codes', '&code=x&code=y'],
    ['a NUL in a parameter', '&code=%00&other=%00'],
  ])('a callback with %s opens no session', async (_, rest) => {
    for (const [kind, prefix] of [
      ['google', 'Idp'],
      ['github', 'Codehost'],
    ]) {
      const browser = platform.browser();
      const begun = await browser.ask('GET', `/api/auth/${kind}?next=https://elsewhere.example`);
      const state = new URL(begun.location).searchParams.get('state') ?? '';
      const path = `/api/auth/${kind}/callback?next=https://elsewhere.example&state=${state}${rest}`;
      const landed = await browser.ask('GET', path);
      expect(landed.location).toBe(`/login?error=${prefix}AuthFailed`);
      expect(browser.cookies.size).toBe(0);
    }
  });

  test('a callback with an invalid code opens no session', async () => {
    for (const [kind, prefix] of [
      ['google', 'Idp'],
      ['github', 'Codehost'],
    ]) {
      const browser = platform.browser();
      const begun = await browser.ask('GET', `/api/auth/${kind}`);
      const state = new URL(begun.location).searchParams.get('state') ?? '';
      const iss = encodeURIComponent(platform.idp.issuerUrl);
      const path = `/api/auth/${kind}/callback?state=${state}&code=guess&iss=${iss}`;
      const landed = await browser.ask('GET', path);
      expect(landed.location).toBe(`/login?error=${prefix}TokenFailed`);
    }
  });

  test('two tabs can both complete their sign-in, and the second session replaces the first', async () => {
    const [browser, subject, email] = [platform.browser(), randomUUID(), newEmail()];
    const one = await platform.backFromGoogle(browser, subject, verified(email));
    const two = await platform.backFromGoogle(browser, subject, verified(email));
    expect((await browser.ask('GET', one)).location).toBe('/dashboard');
    const before = browser.copy();
    expect((await browser.ask('GET', two)).location).toBe('/dashboard');
    expect(await platform.whoIs(browser)).toMatchObject({ email });
    expect(await platform.whoIs(before)).toBeNull();
  });

  test('opens no session when the code host fails to return the user', async () => {
    platform.codeHost.down = 502;
    const landed = await platform.github(platform.browser(), coder(newEmail()));
    expect(landed.location).toBe('/login?error=CodehostAuthError');
  });
});

describe('concurrent callbacks', attack, () => {
  test('a callback repeated 50 times concurrently at two processes opens one session', async () => {
    const [browser, email] = [platform.browser(), newEmail()];
    const back = await platform.backFromGoogle(browser, randomUUID(), verified(email));
    const landed = await Promise.all(
      Array.from({ length: 50 }, (_, index) => {
        const copy = new Browser(platform.urls[index % 2] ?? '');
        for (const [name, value] of browser.cookies) copy.cookies.set(name, value);
        return copy.ask('GET', back);
      }),
    );
    expect(landed.filter(({ location }) => location === '/dashboard')).toHaveLength(1);
    const rows = await platform.asOwner(
      `SELECT s.id FROM sessions s JOIN users u ON u.id = s.user_id WHERE u.email = '${email}'`,
    );
    expect(rows).toHaveLength(1);
  });

  test('a repeated callback opens one session even if the provider accepts its code twice', async () => {
    const { google } = platform.dependencies.providers;
    if (!google) throw new Error('the test platform needs an identity provider');
    const prove = google.prove.bind(google);
    let proven: ReturnType<typeof prove> | undefined;
    const lenient = vi
      .spyOn(google, 'prove')
      .mockImplementation((...shown) => (proven ??= prove(...shown)));
    const browser = platform.browser();
    const back = await platform.backFromGoogle(browser, randomUUID(), verified(newEmail()));
    const landed = [];
    for (const copy of [browser.copy(), browser.copy()]) {
      landed.push((await copy.ask('GET', back)).location);
    }
    lenient.mockRestore();
    expect(landed).toEqual(['/dashboard', '/login?error=IdpAuthFailed']);
  });

  test('concurrent first sign-ins of one user create one account', async () => {
    const [subject, email] = [randomUUID(), newEmail()];
    const landed = await Promise.all([
      ...Array.from({ length: 6 }, () =>
        platform.google(platform.browser(), subject, verified(email)),
      ),
      platform.github(platform.browser(), coder(email)),
    ]);
    expect(landed.map(({ location }) => location)).toEqual(Array(7).fill('/dashboard'));
    const [{ count } = {}] = await platform.asOwner(
      `SELECT count(*)::int FROM users WHERE email = '${email}'`,
    );
    expect(count).toBe(1);
  });
});

test('a sign-in ends the earlier session of its browser', attack, async () => {
  const { browser, id } = await platform.registered();
  const before = browser.copy();
  await platform.google(browser, randomUUID(), verified(newEmail()));
  expect((await platform.whoIs(browser))?.id).not.toBe(id);
  expect(await platform.whoIs(before)).toBeNull();
});

describe('a provider without configuration', () => {
  test('an unconfigured provider is reported on sign-in, on the callback and on linking', async () => {
    const alone = await databaseAlone(platform.database);
    const there = await platformWith({ providers: alone.dependencies.providers });
    await alone.close();
    for (const [kind, prefix] of [
      ['google', 'Idp'],
      ['github', 'Codehost'],
    ]) {
      for (const path of [`/api/auth/${kind}`, `/api/auth/${kind}/callback?code=x&state=y`]) {
        const { location, status } = await there().ask('GET', path);
        expect([status, location]).toEqual([302, `/login?error=${prefix}NotConfigured`]);
      }
      const { browser } = await platform.registered();
      const link = await at(there, browser).ask('POST', `/api/settings/identities/${kind}`);
      expect(link.status).toBe(503);
    }
  });

  test.each([
    { CODEHOST_CLIENT_ID: 'an-id' },
    { CODEHOST_CLIENT_SECRET: 'a-secret' },
    { IDP_CLIENT_SECRET: 'a-secret' },
  ])('a provider counts as unconfigured if only %j is set', async (env) => {
    const alone = await databaseAlone(platform.database, undefined, env);
    const { github, google } = alone.dependencies.providers;
    await alone.close();
    expect([google, github]).toEqual([undefined, undefined]);
  });
});

describe('an identity provider that is down', () => {
  test('reports an unreachable identity provider, retries after a pause and then recovers', async () => {
    const there = await secondPlatform();
    vi.useFakeTimers({ toFake: ['Date', 'performance'], now: Date.now() });
    platform.idp.forging.down = 503;
    const asked = platform.idp.asked.length;
    for (let n = 0; n < 3; n++) {
      const browser = there();
      const begun = await browser.ask('GET', '/api/auth/google');
      expect([begun.status, begun.location]).toEqual([302, '/login?error=IdpAuthError']);
      expect(browser.cookies.size).toBe(0);
    }
    const { browser } = await platform.registered();
    const link = await at(there, browser).ask('POST', '/api/settings/identities/google');
    expect(link.status).toBe(502);
    expect(platform.idp.asked.length).toBe(asked + 1);
    platform.idp.forging.down = undefined;
    // The pause must not depend on the wall clock.
    vi.setSystemTime(Date.now() - 60_000);
    vi.advanceTimersByTime(6_000);
    const landed = await platform.google(there(), randomUUID(), verified(newEmail()));
    expect(landed.location).toBe('/dashboard');
  });

  test('rejects a discovery document with a different issuer', attack, async () => {
    const there = await secondPlatform();
    platform.idp.forging.discovery = { issuer: 'https://elsewhere.example' };
    const begun = await there().ask('GET', '/api/auth/google');
    expect(begun.location).toBe('/login?error=IdpAuthError');
  });

  test('a failed token request opens no session, and a new sign-in succeeds', async () => {
    const [browser, who] = [platform.browser(), verified(newEmail())];
    const subject = randomUUID();
    const back = await platform.backFromGoogle(browser, subject, who);
    platform.idp.forging.down = 503;
    const landed = await browser.ask('GET', back);
    expect(landed.location).toBe('/login?error=IdpTokenFailed');
    expect(browser.cookies.size).toBe(0);
    platform.idp.forging.down = undefined;
    expect((await platform.google(browser, subject, who)).location).toBe('/dashboard');
  });
});

describe("the identity provider's variants", () => {
  test('reads the user from the userinfo endpoint if the ID token lacks the claims', async () => {
    const callback = 'http://platform.test/api/auth/google/callback';
    const idp = await startIdentityProvider(callback, { inUserinfo: true });
    try {
      const there = await secondPlatform(idp.issuerUrl);
      const [browser, email] = [there(), newEmail()];
      const { location } = await browser.ask('GET', '/api/auth/google');
      const back = await idp.consent(location, randomUUID(), verified(email, 'Ada'));
      const landed = await browser.ask('GET', back.pathname + back.search);
      expect(landed.location).toBe('/dashboard');
      expect(await platform.whoIs(browser)).toMatchObject({ email, name: 'Ada' });
      expect(idp.asked).toContain('/me');
    } finally {
      await idp.close();
    }
  });

  test("accepts the provider's new signing key after a minute and rejects the former key", async () => {
    const there = await secondPlatform();
    const who = () => [there(), randomUUID(), verified(newEmail())] as const;
    expect((await platform.google(...who())).location).toBe('/dashboard');
    const next = await generateKeyPair('RS256');
    const [kid, alg] = ['the-next', 'RS256'];
    platform.idp.forging.keys = [{ ...(await exportJWK(next.publicKey)), kid, alg }];
    platform.idp.forging.idToken = (claims) =>
      new SignJWT(claims).setProtectedHeader({ alg, kid }).sign(next.privateKey);
    passed(61_000);
    expect((await platform.google(...who())).location).toBe('/dashboard');
    platform.idp.forging.idToken = undefined;
    const landed = await platform.google(...who());
    expect(landed.location).toBe('/login?error=IdpTokenFailed');
  });

  test.each([
    ['another', 'https://elsewhere.example'],
    ['none', undefined],
  ])('rejects a callback whose issuer parameter is %s', attack, async (_, iss) => {
    const browser = platform.browser();
    const back = new URL(
      await platform.backFromGoogle(browser, randomUUID(), verified(newEmail())),
      'http://platform.test',
    );
    expect(back.searchParams.get('iss')).toBe(platform.idp.issuerUrl);
    if (iss === undefined) back.searchParams.delete('iss');
    else back.searchParams.set('iss', iss);
    const landed = await browser.ask('GET', back.pathname + back.search);
    expect(landed.location).toBe('/login?error=IdpTokenFailed');
    expect(await platform.whoIs(browser)).toBeNull();
  });
});

test('over HTTPS all sign-in cookies are Secure', attack, async () => {
  const { settings } = platform.dependencies;
  const accounts = { ...settings.accounts, sessionCookieSecure: true };
  const there = await platformWith({ settings: { ...settings, accounts } });
  const browser = there();
  const begun = await browser.ask('GET', '/api/auth/google');
  const [flow = ''] = begun.headers.getSetCookie();
  expect(flow).toMatch(/^__Host-sign-in-google-.*; Path=\/;.*; Secure$/);
  const back = await platform.idp.consent(begun.location, randomUUID(), verified(newEmail()));
  const landed = await browser.ask('GET', back.pathname + back.search);
  expect(landed.location).toBe('/dashboard');
  const set = landed.headers.getSetCookie();
  expect(set).toHaveLength(2);
  for (const each of set) expect(each).toMatch(/; Secure$/);
});

test('a sign-in that takes more than ten minutes fails', attack, async () => {
  const browser = platform.browser();
  const back = await platform.backFromGoogle(browser, randomUUID(), verified(newEmail()));
  passed(601_000);
  expect((await browser.ask('GET', back)).location).toBe('/login?error=IdpAuthFailed');
});

describe('unlinking', () => {
  const identities = async (browser: Browser) =>
    (await browser.ask('GET', '/api/settings/identities')).body.identities;

  test('unlinking removes the identity and revokes its stored refresh token at the provider', async () => {
    const { browser } = await platform.registered();
    const [subject, begin] = [randomUUID(), '/api/settings/identities/google'];
    await platform.google(browser, subject, verified(newEmail()), begin);
    const [row] = await platform.asOwner(
      `SELECT id, refresh_token FROM identities WHERE subject = '${subject}'`,
    );
    expect(row?.refresh_token).toMatch(/^v1\./);
    const [shown] = await identities(browser);
    const unlinked = await browser.ask('DELETE', `/api/settings/identities/${shown.id}`);
    expect([unlinked.status, unlinked.body]).toEqual([200, { success: true }]);
    expect(await identities(browser)).toEqual([]);
    const token = platform.idp.revoked.at(-1) ?? '';
    expect(token).not.toBe('');
    expect(row?.refresh_token).not.toContain(token);
    expect(platform.logged.join('')).not.toContain(token);
  });

  test(
    "unlinking ends sessions opened by that identity, except the caller's and those of other methods",
    attack,
    async () => {
      const [planted, owners, email] = [randomUUID(), randomUUID(), newEmail()];
      const [owner, elsewhere, thief] = [
        platform.browser(),
        platform.browser(),
        platform.browser(),
      ];
      await platform.google(owner, owners, verified(email));
      await platform.google(
        owner,
        planted,
        verified(newEmail()),
        '/api/settings/identities/google',
      );
      await platform.github(elsewhere, coder(email));
      await platform.google(thief, planted, verified(newEmail()));
      const signedIn = async (browser: Browser) =>
        (await browser.ask('GET', '/api/auth/session')).body.user?.email;
      expect(await Promise.all([owner, elsewhere, thief].map(signedIn))).toEqual([
        email,
        email,
        email,
      ]);
      const theirs = (await identities(thief)).filter(
        ({ kind }: { kind: string }) => kind === 'google',
      );
      const answer = await owner.ask('DELETE', `/api/settings/identities/${theirs.at(-1).id}`);
      expect(answer.status).toBe(200);
      expect(await Promise.all([owner, elsewhere, thief].map(signedIn))).toEqual([
        email,
        email,
        undefined,
      ]);
    },
  );

  test('does not count disabled identities and identities that cannot sign in as remaining sign-in methods', async () => {
    const [browser, email] = [platform.browser(), newEmail()];
    await platform.google(browser, randomUUID(), verified(email));
    await platform.github(browser, coder(email));
    const id = (await platform.whoIs(browser))?.id;
    await platform.asOwner(
      `INSERT INTO identities (id, user_id, kind, issuer, subject, label, created_at)
       VALUES (gen_random_uuid()::text, '${id}', 'farcaster', 'a', gen_random_uuid()::text, 'f', now());
       UPDATE identities SET disabled_at = now() WHERE user_id = '${id}' AND kind = 'google'`,
    );
    const shown: { id: string; kind: string }[] = await identities(browser);
    const unlink = async (kind: string) =>
      (
        await browser.ask(
          'DELETE',
          `/api/settings/identities/${shown.find((each) => each.kind === kind)?.id}`,
        )
      ).status;
    expect(await unlink('github')).toBe(409);
    expect(await unlink('google')).toBe(200);
    expect(await unlink('github')).toBe(409);
    expect(await unlink('farcaster')).toBe(200);
  });

  test('keeps the last sign-in method, also when two are unlinked concurrently', async () => {
    const [browser, email] = [platform.browser(), newEmail()];
    await platform.google(browser, randomUUID(), verified(email));
    await platform.github(browser, coder(email));
    const both = await identities(browser);
    expect(both).toHaveLength(2);
    const answers = await Promise.all(
      both.map(({ id }: { id: string }) =>
        browser.copy().ask('DELETE', `/api/settings/identities/${id}`),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
    expect(await identities(browser)).toHaveLength(1);
  });
});
