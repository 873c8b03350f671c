import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { REFERRAL_AMOUNT } from '../../../src/accounts/accounts/referral-credits.js';
import { balanceOf, grantedOf } from '../../../src/money/ledger/ledger.js';
import { newAddress } from '../../support/http.js';
import { ADMIN_EMAIL, testPlatform, type TestPlatform } from '../../support/platform.js';

let platform: TestPlatform;

beforeAll(async () => {
  platform = await testPlatform({ workers: false });
});
afterAll(() => platform?.close());

const attack = { tags: 'attack' };
const newEmail = () => `${randomUUID()}@example.com`;
const register = (body: unknown, options = {}) =>
  platform.web(undefined, 'POST', '/api/register', { body, ...options });
const login = (body: unknown, options = {}) =>
  platform.web(undefined, 'POST', '/api/auth/login', { body, ...options });
const session = (cookie?: string) =>
  platform.web(undefined, 'GET', '/api/auth/session', { headers: cookie ? { cookie } : {} });

describe('registration', () => {
  test('registration returns id, email and name, creates no session, and uses the email as default name', async () => {
    const email = newEmail();
    const named = await register({ email, password: 'long enough', name: 'Ada' });
    expect(named.status).toBe(200);
    expect(named.body).toEqual({ id: expect.any(String), email, name: 'Ada' });
    expect(named.headers.get('set-cookie')).toBeNull();
    const other = newEmail();
    const unnamed = await register({ email: other.toUpperCase(), password: 'long enough' });
    expect(unnamed.body).toMatchObject({ email: other, name: other });
  });

  test.each([
    [{ password: 'long enough' }, 'email is required'],
    [{ email: 'ada@example.com' }, 'password is required'],
    [{ email: 'ada@example.com', password: 'short' }, 'password must be at least 8 characters'],
    [{ email: 'not an email', password: 'long enough' }, 'Invalid email'],
    [{ email: 'x@wallet.service', password: 'long enough' }, 'Invalid email'],
    [{ email: 7, password: 'long enough' }, 'email must be text'],
    [
      { email: 'ada@example.com', password: 'long enough', referralCode: 'no such code' },
      'referralCode may hold letters, digits and hyphens',
    ],
    [
      { email: 'ada@example.com', password: 'long enough', referralCode: 'x'.repeat(21) },
      'referralCode must be at most 20 characters',
    ],
    [
      { email: 'ada@example.com', password: 'long enough', referralCode: 'NOBODYS-CODE' },
      'Unknown referral code',
    ],
  ])('refuses the registration %j', async (body, error) => {
    const refused = await register(body);
    expect(refused.status).toBe(400);
    expect(refused.body.error).toBe(error);
  });

  test('returns 409 for an email that is registered already, in any case', async () => {
    const { email } = await platform.signUp();
    const again = await register({ email: email.toUpperCase(), password: 'long enough' });
    expect(again.status).toBe(409);
    expect(again.body).toMatchObject({ error: 'Email already registered' });
  });

  test('limits registrations from one address and reports the limit in the headers', async () => {
    const from = newAddress();
    for (let left = 9; left >= 0; left--) {
      const counted = await register({}, { from });
      expect(counted.status).toBe(400);
      expect(counted.headers.get('ratelimit-remaining')).toBe(String(left));
      expect(counted.headers.get('ratelimit-limit')).toBe('10');
    }
    const refused = await register({}, { from });
    expect(refused.status).toBe(429);
    expect(refused.body.error).toBe('Too many requests, please slow down.');
    expect(refused.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    expect(refused.headers.get('ratelimit-reset')).toMatch(/^[1-9]\d*$/);
    expect(refused.headers.get('x-ratelimit-limit')).toBeNull();
  });

  test('limits registrations from one network', attack, async () => {
    const networks = Array.from({ length: 21 }, (_, n) => `2001:db8:3:${n.toString(16)}::1`);
    const statuses: number[] = [];
    for (const from of networks) statuses.push((await register({}, { from })).status);
    expect(statuses).toEqual([...Array<number>(20).fill(400), 429]);
  });

  test('a referral code, in any case, credits both users once, until verification without use', async () => {
    const referrer = await platform.signUp();
    const code = await platform.db.asPlatform().transaction(async (db) => {
      return (await db.User.findByPk(referrer.id))?.referralCode ?? '';
    });
    const body = { email: newEmail(), password: 'long enough', referralCode: code.toLowerCase() };
    const made = await register(body);
    expect(made.status).toBe(200);
    for (const id of [referrer.id, made.body.id as string]) {
      expect(await balanceOf(platform.db.asUser(id), grantedOf(id), 'usd')).toEqual({
        balance: REFERRAL_AMOUNT,
        held: REFERRAL_AMOUNT,
      });
    }
  });

  test('a registration repeated with its Idempotency-Key has one effect', async () => {
    const from = newAddress();
    const headers = { 'idempotency-key': randomUUID() };
    const body = { email: newEmail(), password: 'long enough' };
    const first = await register(body, { from, headers });
    const again = await register(body, { from, headers });
    expect(again.status).toBe(200);
    expect(again.body).toEqual(first.body);
    const other = await register({ ...body, email: newEmail() }, { from, headers });
    expect(other.status).toBe(422);
  });
});

describe('sign-in', () => {
  test('sign-in sets an HttpOnly session cookie for 30 days', async () => {
    const { email, password, id } = await platform.signUp();
    const signedIn = await login({ email: email.toUpperCase(), password });
    expect(signedIn.status).toBe(200);
    expect(signedIn.body).toEqual({ ok: true, user: { id, name: email } });
    const [pair, ...attributes] = (signedIn.headers.get('set-cookie') ?? '').split('; ');
    expect(pair).toMatch(/^service-session=[\w-]{43}$/);
    expect(attributes.sort()).toEqual(['HttpOnly', 'Max-Age=2592000', 'Path=/', 'SameSite=Lax']);

    const shown = await session(pair);
    expect(shown.body).toEqual({
      user: { id, name: email, email, isAdmin: false },
      csrfToken: expect.any(String),
    });
  });

  test('sign-in requires both fields, and answers the same for a wrong password and an unknown email', async () => {
    const { email } = await platform.signUp();
    expect((await login({ email })).status).toBe(400);
    expect((await login({ password: 'long enough' })).status).toBe(400);
    const wrong = await login({ email, password: 'wrong password' });
    const unknown = await login({ email: newEmail(), password: 'wrong password' });
    expect([wrong.status, unknown.status]).toEqual([401, 401]);
    expect(wrong.body.error).toBe(unknown.body.error);
    expect(wrong.headers.get('set-cookie')).toBeNull();
  });

  test(
    'refuses sign-in after several wrong passwords, even with the right one',
    attack,
    async () => {
      const { email, password } = await platform.signUp();
      const from = newAddress();
      const guesses = Array.from({ length: 5 }, () =>
        login({ email, password: 'a guess' }, { from }),
      );
      const statuses = (await Promise.all(guesses)).map(({ status }) => status);
      expect(statuses).toEqual([401, 401, 401, 401, 401]);
      // The block now lasts one second; the test extends it, for busy machines.
      await platform.asOwner(
        `UPDATE sign_in_attempts SET blocked_until = blocked_until + interval '1 minute'`,
      );
      const refused = await login({ email, password }, { from });
      expect(refused.status).toBe(429);
      expect(refused.body.error).toBe('Too many sign-ins, please try again later.');
      expect(refused.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
      expect((await login({ email, password })).status).toBe(200);
    },
  );

  test('limits sign-in attempts from one address and from one network', attack, async () => {
    const statuses = async (addresses: string[]) => {
      const answers = await Promise.all(addresses.map((from) => login({}, { from })));
      return new Set(answers.map(({ status }) => status));
    };
    const from = newAddress();
    expect(await statuses(Array<string>(60).fill(from))).toEqual(new Set([400]));
    expect(await statuses([from])).toEqual(new Set([429]));
    const networks = Array.from({ length: 120 }, (_, n) => `2001:db8:1:${n.toString(16)}::1`);
    expect(await statuses(networks)).toEqual(new Set([400]));
    expect(await statuses(['2001:db8:1:ffff::1'])).toEqual(new Set([429]));
    expect(await statuses(['2001:db8:2:ffff::1'])).toEqual(new Set([400]));
  });

  test('a verified email of ADMIN_EMAILS makes an administrator', async () => {
    const admin = await platform.signUp(undefined, ADMIN_EMAIL);
    expect((await session(admin.cookie)).body.user.isAdmin).toBe(true);
  });
});

describe('session', () => {
  test("a new session replaces the browser's previous one", async () => {
    const { cookie, email, password } = await platform.signUp();
    const signedIn = await login({ email, password }, { headers: { cookie } });
    const [fresh] = (signedIn.headers.get('set-cookie') ?? '').split(';');
    expect((await session(cookie)).body).toEqual({ user: null });
    expect((await session(fresh)).body).toMatchObject({ user: { email } });
    // With two session cookies, an attacker may have set one of them.
    expect((await session(`${cookie}; ${fresh}`)).body).toEqual({ user: null });
  });

  test('a request without a valid session returns 200 with user null', async () => {
    const none = await session();
    expect([none.status, none.body]).toEqual([200, { user: null }]);
    const unknown = await session(`service-session=${'x'.repeat(43)}`);
    expect([unknown.status, unknown.body]).toEqual([200, { user: null }]);
  });

  test('signing out ends the session, always succeeds and clears the cookie', async () => {
    const { cookie } = await platform.signUp();
    const out = () => platform.web(undefined, 'POST', '/api/auth/signout', { headers: { cookie } });
    const first = await out();
    expect([first.status, first.body]).toEqual([200, { ok: true }]);
    expect(first.headers.get('set-cookie')).toMatch(/^service-session=; .*Max-Age=0/);
    expect((await session(cookie)).body).toEqual({ user: null });
    expect((await out()).body).toEqual({ ok: true });
    expect((await platform.web(undefined, 'POST', '/api/auth/signout')).body).toEqual({ ok: true });
  });

  test('refuses a change from another site without the CSRF token', async () => {
    const { cookie } = await platform.signUp('solo');
    const { csrfToken } = (await session(cookie)).body;
    const provision = (headers: Record<string, string>) =>
      platform.web(undefined, 'POST', '/api/agents/provision', {
        body: {},
        headers: { cookie, origin: 'https://evil.example', ...headers },
      });
    const refused = await provision({});
    expect([refused.status, refused.body.error]).toEqual([403, 'Missing or invalid CSRF token']);
    expect((await provision({ 'x-csrf-token': csrfToken })).status).toBe(400);
  });
});

describe('in production', () => {
  let strict: TestPlatform;
  beforeAll(async () => {
    strict = await testPlatform({
      workers: false,
      env: { NODE_ENV: 'production', ADMIN_EMAILS: undefined, AGENT_EGRESS: 'open' },
    });
  });
  afterAll(() => strict?.close());

  const body = { email: 'first@example.com', password: 'long enough' };
  const robot = { headers: { 'user-agent': 'curl/8.5.0' } };

  test('refuses a registration by a program or with the hidden field filled in', async () => {
    const refused = await strict.web(undefined, 'POST', '/api/register', { body, ...robot });
    expect(refused.status).toBe(403);
    const trapped = { body: { ...body, website: 'https://spam.example' } };
    expect((await strict.web(undefined, 'POST', '/api/register', trapped)).status).toBe(403);
  });

  test('the cookie is for HTTPS only, and the first account is no administrator', async () => {
    expect((await strict.web(undefined, 'POST', '/api/register', { body })).status).toBe(200);
    const signedIn = await strict.web(undefined, 'POST', '/api/auth/login', { body });
    const cookie = signedIn.headers.get('set-cookie') ?? '';
    expect(cookie.split('; ')).toContain('Secure');
    const shown = await strict.web(undefined, 'GET', '/api/auth/session', { headers: { cookie } });
    expect(shown.body.user.isAdmin).toBe(false);
  });
});

test('outside production, without ADMIN_EMAILS, only the first account is an administrator', async () => {
  const fresh = await testPlatform({ workers: false, env: { ADMIN_EMAILS: undefined } });
  try {
    const admins: boolean[] = [];
    for (const name of ['first', 'second']) {
      const body = { email: `${name}@example.com`, password: 'long enough' };
      await fresh.web(undefined, 'POST', '/api/register', { body });
      const signedIn = await fresh.web(undefined, 'POST', '/api/auth/login', { body });
      const headers = { cookie: signedIn.headers.get('set-cookie') ?? '' };
      const shown = await fresh.web(undefined, 'GET', '/api/auth/session', { headers });
      admins.push(shown.body.user.isAdmin);
    }
    expect(admins).toEqual([true, false]);
  } finally {
    await fresh.close();
  }
});
