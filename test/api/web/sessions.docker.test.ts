import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newAddress } from '../../support/http.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';

let platform: TestPlatform;
let ada: TestUser;

beforeAll(async () => {
  platform = await testPlatform({ workers: false });
  ada = await platform.signUp();
});
afterAll(() => platform?.close());

const attack = { tags: 'attack' };

interface Shown {
  readonly id: string;
  readonly current: boolean;
}

/** Signs the user in from another browser. */
async function browser(user: TestUser, headers = {}, from = newAddress()): Promise<TestUser> {
  const { email, password } = user;
  const options = { body: { email, password }, headers, from };
  const signedIn = await platform.web(undefined, 'POST', '/api/auth/login', options);
  const [cookie = ''] = (signedIn.headers.get('set-cookie') ?? '').split(';');
  return { ...user, cookie };
}

async function sessionsOf(user: TestUser): Promise<Shown[]> {
  const { body } = await platform.web(user, 'GET', '/api/auth/sessions');
  return body.sessions as Shown[];
}

const isSignedIn = async (user: TestUser) =>
  (await platform.web(user, 'GET', '/api/auth/session')).body.user !== null;

describe('list of sessions', () => {
  test("lists the user's sessions and marks the current one", async () => {
    const user = await platform.signUp();
    const from = newAddress();
    const phone = await browser(user, { 'user-agent': 'A phone' }, from);
    const { status, body } = await platform.web(phone, 'GET', '/api/auth/sessions');
    expect(status).toBe(200);
    expect(body.sessions).toHaveLength(2);
    const current = body.sessions.find((each: Shown) => each.current);
    expect(current).toEqual({
      id: expect.any(String),
      current: true,
      method: 'password',
      createdAt: expect.any(String),
      lastSeenAt: expect.any(String),
      expiresAt: expect.any(String),
      userAgent: 'A phone',
      address: from,
    });
    const token = phone.cookie.split('=')[1] ?? '';
    expect(JSON.stringify(body)).not.toContain(token);
  });

  test('shows when each session was last seen, to the minute', async () => {
    const user = await platform.signUp();
    await platform.asOwner(
      `UPDATE sessions SET last_seen_at = now() - interval '1 hour' WHERE user_id = '${user.id}'`,
    );
    await expect
      .poll(async () => {
        const { body } = await platform.web(user, 'GET', '/api/auth/sessions');
        return Date.now() - Date.parse(body.sessions[0].lastSeenAt);
      })
      .toBeLessThan(60_000);
  });
});

describe('ending sessions', () => {
  test('ends one session', async () => {
    const other = await browser(ada);
    const [shown] = (await sessionsOf(other)).filter(({ current }) => current);
    const path = `/api/auth/sessions/${shown?.id}`;
    const ended = await platform.web(ada, 'DELETE', path);
    expect([ended.status, ended.body]).toEqual([200, { success: true }]);
    expect(await isSignedIn(other)).toBe(false);
    expect(await isSignedIn(ada)).toBe(true);
    expect((await platform.web(ada, 'DELETE', path)).status).toBe(404);
  });

  test('ends all other sessions', async () => {
    const user = await platform.signUp();
    const others = [await browser(user), await browser(user)];
    const ended = await platform.web(user, 'DELETE', '/api/auth/sessions');
    expect([ended.status, ended.body]).toEqual([200, { success: true, ended: 2 }]);
    const again = await platform.web(user, 'DELETE', '/api/auth/sessions');
    expect(again.body).toEqual({ success: true, ended: 0 });
    const reported = await platform.db
      .asUser(user.id)
      .query(`SELECT FROM audit_log WHERE action = 'session.delete-others'`);
    expect(reported).toHaveLength(1);
    for (const other of others) expect(await isSignedIn(other)).toBe(false);
    expect(await isSignedIn(user)).toBe(true);
    expect(await isSignedIn(ada)).toBe(true);
  });

  test("never ends another user's session", attack, async () => {
    const stranger = await platform.signUp();
    for (const { id } of await sessionsOf(ada)) {
      const refused = await platform.web(stranger, 'DELETE', `/api/auth/sessions/${id}`);
      expect(refused.status).toBe(404);
    }
    await platform.web(stranger, 'DELETE', '/api/auth/sessions');
    expect(await isSignedIn(ada)).toBe(true);
  });
});

describe('changing the password', () => {
  const change = (user: TestUser, body: unknown, from = newAddress()) =>
    platform.web(user, 'POST', '/api/settings/password', { body, from });

  test('a password change ends all other sessions and replaces the session cookie', async () => {
    const user = await platform.signUp();
    const other = await browser(user);
    const newPassword = `new ${randomUUID()}`;
    const changed = await change(user, { currentPassword: user.password, newPassword });
    expect([changed.status, changed.body]).toEqual([200, { success: true }]);
    const [cookie = ''] = (changed.headers.get('set-cookie') ?? '').split(';');
    expect(await isSignedIn({ ...user, cookie })).toBe(true);
    expect(await isSignedIn(user)).toBe(false);
    expect(await isSignedIn(other)).toBe(false);
    const again = await browser({ ...user, password: newPassword });
    expect(await isSignedIn(again)).toBe(true);
  });

  test('a password change requires the current password and a valid new one', async () => {
    const user = await platform.signUp();
    const wrong = await change(user, { currentPassword: 'not it', newPassword: 'a new password' });
    expect([wrong.status, wrong.body.error]).toEqual([403, 'Current password is incorrect']);
    const short = await change(user, { currentPassword: user.password, newPassword: 'short' });
    expect([short.status, short.body.error]).toEqual([
      400,
      'newPassword must be at least 8 characters',
    ]);
    expect((await change(user, { newPassword: 'a new password' })).status).toBe(400);
    expect(await isSignedIn(user)).toBe(true);
  });

  test('limits password guesses with a stolen session', attack, async () => {
    const user = await platform.signUp();
    const from = newAddress();
    const body = { currentPassword: 'a guess', newPassword: 'a new password' };
    const guesses = Array.from({ length: 5 }, () => change(user, body, from));
    const statuses = (await Promise.all(guesses)).map(({ status }) => status);
    expect(statuses).toEqual([403, 403, 403, 403, 403]);
    // The block now lasts one second; the test extends it, for busy machines.
    await platform.asOwner(
      `UPDATE sign_in_attempts SET blocked_until = blocked_until + interval '1 minute'`,
    );
    const right = { ...body, currentPassword: user.password };
    expect((await change(user, right, from)).status).toBe(429);
  });
});
