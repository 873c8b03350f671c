import { randomInt, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { signInPlatform, type SignInPlatform } from '../support/sign-in.js';

let platform: SignInPlatform;

beforeAll(async () => {
  platform = await signInPlatform();
});
afterAll(() => platform?.close());

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
