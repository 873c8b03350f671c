import { randomInt, randomUUID } from 'node:crypto';
import { exportSPKI, generateKeyPair, SignJWT, UnsecuredJWT, type JWTPayload } from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { Browser } from '../support/cookies-browser.js';
import { signInPlatform, type SignInPlatform } from '../support/sign-in.js';

let platform: SignInPlatform;

beforeAll(async () => {
  platform = await signInPlatform();
});
afterAll(() => platform?.close());
afterEach(() => {
  Object.assign(platform.idp.forging, { idToken: undefined, down: undefined });
  platform.codeHost.down = undefined;
});

const attack = { tags: 'attack' };

const newEmail = () => `${randomUUID()}@example.com`;
const verified = (email: string, name?: string) => ({ email, email_verified: true, name });

/** Somebody new at the code host. */
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
  test('sends the browser to its consent screen, and asks for lasting access', async () => {
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

  test('makes an account without a password whose address is verified, and a session', async () => {
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
  test('makes an account, and a session', async () => {
    const [browser, email] = [platform.browser(), newEmail()];
    const landed = await platform.github(browser, coder(email));
    expect([landed.status, landed.location]).toEqual([302, '/dashboard']);
    expect(await platform.whoIs(browser)).toMatchObject({ email, name: 'Ada Lovelace' });
    const { body } = await browser.ask('GET', '/api/auth/sessions');
    expect(body.sessions).toMatchObject([{ method: 'github', current: true }]);
  });
});

describe('an ID token that is forged', attack, () => {
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
    'that is over': (claims) => signed({ ...claims, exp: now() - 60 }),
    'of the future': (claims) => signed({ ...claims, nbf: now() + 600 }),
    'without a subject': ({ sub, ...claims }) => signed(claims),
    'and not even a token': () => 'x.y.z',
  };

  test('is a forgery: the same, unchanged, is taken', async () => {
    platform.idp.forging.idToken = (claims) => signed(claims);
    const landed = await platform.google(platform.browser(), randomUUID(), verified(newEmail()));
    expect(landed.location).toBe('/dashboard');
  });

  test.each(Object.keys(FORGED))('%s opens nothing', async (name) => {
    const [browser, email] = [platform.browser(), newEmail()];
    platform.idp.forging.idToken = FORGED[name];
    const landed = await platform.google(browser, randomUUID(), verified(email));
    expect(landed.location).toBe('/login?error=IdpTokenFailed');
    expect(await platform.whoIs(browser)).toBeNull();
    expect(await platform.asOwner(`SELECT id FROM users WHERE email = '${email}'`)).toEqual([]);
  });
});

describe('what comes back', () => {
  test.each([
    ['no code', ''],
    ['the error of the provider', '&error=access_denied'],
    ['a code and an error', '&code=x&error=access_denied'],
    ['two codes', '&code=x&code=y'],
  ])('with %s signs nobody in', async (_, rest) => {
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

  test('with a code that is not good signs nobody in', async () => {
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

  test('to two tabs signs in from both, and the second session takes the first one’s place', async () => {
    const [browser, subject, email] = [platform.browser(), randomUUID(), newEmail()];
    const one = await platform.backFromGoogle(browser, subject, verified(email));
    const two = await platform.backFromGoogle(browser, subject, verified(email));
    expect((await browser.ask('GET', one)).location).toBe('/dashboard');
    const before = browser.copy();
    expect((await browser.ask('GET', two)).location).toBe('/dashboard');
    expect(await platform.whoIs(browser)).toMatchObject({ email });
    expect(await platform.whoIs(before)).toBeNull();
  });

  test('when the code host does not tell who it is signs nobody in', async () => {
    platform.codeHost.down = 502;
    const landed = await platform.github(platform.browser(), coder(newEmail()));
    expect(landed.location).toBe('/login?error=CodehostAuthError');
  });
});

describe('once', attack, () => {
  test('an answer that comes 50 times at once, to two processes, opens one session', async () => {
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

  test('first sign-ins of one person at once make one account', async () => {
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

test('a sign-in ends the session that it came with', attack, async () => {
  const { browser, id } = await platform.registered();
  const before = browser.copy();
  await platform.google(browser, randomUUID(), verified(newEmail()));
  expect((await platform.whoIs(browser))?.id).not.toBe(id);
  expect(await platform.whoIs(before)).toBeNull();
});

describe('unlinking', () => {
  const identities = async (browser: Browser) =>
    (await browser.ask('GET', '/api/settings/identities')).body.identities;

  test('forgets the way in, and revokes at the provider what is sealed here', async () => {
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

  test('leaves the last way in, also when two go at once', async () => {
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
