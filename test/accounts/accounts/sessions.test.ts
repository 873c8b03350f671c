import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  createApiKey,
  listApiKeys,
  MAX_API_KEYS,
} from '../../../src/accounts/accounts/api-keys.js';
import { changePassword } from '../../../src/accounts/accounts/change-password.js';
import {
  createSession,
  deleteSession,
  listSessions,
  MAX_SESSIONS,
  SESSION_LIFETIME_MS,
  SignedInSessions,
} from '../../../src/accounts/accounts/sessions.js';
import { verifyPassword, type SignInProof } from '../../../src/accounts/accounts/sign-in.js';
import { ForbiddenError, UnauthorizedError } from '../../../src/lib/errors.js';
import { networksOf } from '../../../src/platform/http/client-networks.js';
import { Retention } from '../../../src/retention/retention.js';
import { loadSettings } from '../../../src/settings.js';
import { queryRows, waitingConnections } from '../../platform/database/catalog.js';
import { makeAccount, PASSWORD } from '../../support/account.js';
import { testEnvironment } from '../../support/platform-environment.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

const RULES = { firstIsAdmin: false, adminEmails: [] };
const ORIGIN = { address: '192.0.2.1', requestId: 'a-request' };
const PLACE = { ...ORIGIN, userAgent: 'Mozilla/5.0' };
const HERE = networksOf(PLACE.address);

let database: TestDatabase;
let ann: SignInProof;

const owner = (sql: string) => queryRows<Record<string, unknown>>(database.ownerUrl, sql);
const find = (token: string) => new SignedInSessions(database.db, RULES).find(token);

/** Creates an account and returns a proof of its password. */
async function somebody(): Promise<SignInProof> {
  const { id, email, passwordHash } = await makeAccount(database.db);
  return { user: { id, name: email, email, isAdmin: false }, method: 'password', passwordHash };
}

/** Opens a session and fails if none is created. */
async function opened(proof: SignInProof, place = {}) {
  const made = await createSession(database.db, proof, { ...PLACE, ...place });
  if (!made) throw new Error('createSession returned no session');
  return made;
}

beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database?.close());
beforeEach(async () => {
  ann = await somebody();
});

describe('a session', () => {
  test('finds a session by its token for 30 days, with its user and CSRF token', async () => {
    const { token, expiresAt } = await opened(ann);
    expect(await find(token)).toEqual({
      id: expect.any(String),
      signedInAt: expect.any(Date),
      lastSeenAt: expect.any(Date),
      user: ann.user,
      csrfToken: expect.stringMatching(/^[\da-f]{64}$/),
      expiresAt,
    });
    expect((await find(token))?.csrfToken).toBe((await find(token))?.csrfToken);
    expect(expiresAt.getTime() - Date.now()).toBeGreaterThan(SESSION_LIFETIME_MS - 60_000);
    expect(expiresAt.getTime() - Date.now()).toBeLessThanOrEqual(SESSION_LIFETIME_MS);
  });

  test("stores a session under its token's hash only", async () => {
    const { token } = await opened(ann);
    const rows = await owner('SELECT * FROM sessions');
    expect(JSON.stringify(rows)).not.toContain(token);
    expect(JSON.stringify(rows)).not.toContain((await find(token))?.csrfToken);
    const hash = createHash('sha256').update(token).digest('hex');
    expect(rows.map((row) => row.token_hash)).toContain(hash);
    expect(await find(hash)).toBeUndefined();
  });

  test('concurrent lookups find each its own session in two round trips', async () => {
    const bob = await somebody();
    const [ofAnn, ofBob] = [await opened(ann), await opened(bob)];
    const calls = vi.spyOn(database.db, 'call');
    const lookup = new SignedInSessions(database.db, RULES);
    const unknown = 'x'.repeat(43);
    const tokens = [ofAnn.token, ofBob.token, unknown, ofAnn.token];
    const found = await Promise.all(tokens.map((token) => lookup.find(token)));
    const users = found.map((session) => session?.user.id);
    expect(users).toEqual([ann.user.id, bob.user.id, undefined, ann.user.id]);
    // The first lookup does not wait for others; all others share the next round trip.
    expect(calls).toHaveBeenCalledTimes(2);
    calls.mockRestore();
  });

  test("deleting a session ends it and leaves the user's other sessions", async () => {
    const [one, other] = [await opened(ann), await opened(ann)];
    await deleteSession(database.db, one.token, ORIGIN);
    await deleteSession(database.db, one.token, ORIGIN);
    expect(await find(one.token)).toBeUndefined();
    expect(await find(other.token)).toBeDefined();
  });

  test("a new session replaces the browser's former session", async () => {
    const before = await opened(ann);
    const { token } = await opened(ann, { replaces: before.token });
    expect(await find(before.token)).toBeUndefined();
    expect(await find(token)).toBeDefined();
  });

  test.each(['', 'x', 'x'.repeat(43), 'x'.repeat(10_000), "' OR true --"])(
    'finds no session by a wrong token (%#)',
    async (token) => {
      expect(await find(token)).toBeUndefined();
      await expect(deleteSession(database.db, token, ORIGIN)).resolves.toBeUndefined();
    },
  );

  test('an expired session is invalid and is removed by the retention pass', async () => {
    const { token } = await opened(ann);
    const { token: other } = await opened(ann);
    const hash = createHash('sha256').update(token).digest('hex');
    await owner(
      `UPDATE sessions SET expires_at = now() - interval '1 minute' WHERE token_hash = '${hash}'`,
    );
    expect(await find(token)).toBeUndefined();
    expect(await listSessions(database.db.asUser(ann.user.id), ann.user.id)).toHaveLength(1);
    const { retention: days } = loadSettings(testEnvironment({ DATABASE_URL: database.url }));
    await new Retention(database.db, days).removeSome('sessions');
    expect(await owner(`SELECT id FROM sessions WHERE token_hash = '${hash}'`)).toEqual([]);
    expect(await find(other)).toBeDefined();
  });

  test(
    'a session that ends during the creation of an API key leaves no key',
    { tags: 'attack' },
    async () => {
      const userId = ann.user.id;
      const { token } = await opened(ann);
      const { id: sessionId = '' } = (await find(token)) ?? {};
      const tenant = database.db.asUser(userId);
      const make = (name: string) =>
        createApiKey(
          database.db,
          { userId, requestId: 'a-request' },
          { name, site: 'here', sessionId },
        );
      await make('before');
      const hash = createHash('sha256').update(token).digest('hex');
      const ends = (at: string) =>
        owner(`UPDATE sessions SET expires_at = ${at} WHERE token_hash = '${hash}'`);
      await ends(`now() - interval '1 second'`);
      await expect(make('too late')).rejects.toThrow(UnauthorizedError);
      await ends(`now() + interval '1 day'`);
      await deleteSession(database.db, token, ORIGIN);
      await expect(make('after')).rejects.toThrow(UnauthorizedError);
      expect(await listApiKeys(tenant, userId)).toMatchObject([{ name: 'before' }]);
    },
  );

  test('creates one of two concurrent API keys if one more is allowed', async () => {
    const userId = ann.user.id;
    const { token } = await opened(ann);
    const { id: sessionId = '' } = (await find(token)) ?? {};
    await owner(
      `INSERT INTO api_keys (id, user_id, name, key_preview, key_hash, lookup_hash, created_at)
       SELECT '${userId}/' || i, '${userId}', 'key', 'sk_', 'hash', '${userId}/' || i, now()
         FROM generate_series(1, ${MAX_API_KEYS - 1}) AS i`,
    );
    const tenant = database.db.asUser(userId);
    const asked = { name: 'one more', site: 'here', sessionId };
    let both: Promise<PromiseSettledResult<unknown>[]> | undefined;
    await database.db.asPlatform().transaction(async (db) => {
      await db.query('SELECT FROM users WHERE id = $userId FOR UPDATE', { userId });
      both = Promise.allSettled(
        ['a', 'b'].map((requestId) => createApiKey(database.db, { userId, requestId }, asked)),
      );
      await expect.poll(() => waitingConnections(database.ownerUrl)).toBe(2);
    });
    expect((await both)?.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(await listApiKeys(tenant, userId)).toHaveLength(MAX_API_KEYS);
  });

  test('the oldest session ends when the user reaches the limit of sessions', async () => {
    const first = await opened(ann);
    await owner(
      `INSERT INTO sessions (token_hash, user_id, created_at, expires_at)
       SELECT gen_random_uuid()::text, '${ann.user.id}', now() + interval '1 s', now() + interval '1 day'
         FROM generate_series(2, ${MAX_SESSIONS})`,
    );
    expect(await find(first.token)).toBeDefined();
    await opened(ann);
    await opened(ann);
    expect(await find(first.token)).toBeUndefined();
    expect(await listSessions(database.db.asUser(ann.user.id), ann.user.id)).toHaveLength(
      MAX_SESSIONS,
    );
  });
});

describe('a session opened by a linked identity', () => {
  const proof = async () => {
    const identity = { id: randomUUID(), kind: 'google', issuer: 'https://idp.test' } as const;
    const { id: userId } = ann.user;
    await database.db
      .asPlatform()
      .transaction((db) =>
        db.Identity.create({ ...identity, userId, subject: identity.id, label: 'ann' }),
      );
    return { user: ann.user, method: 'google', identityId: identity.id } as const;
  };

  test('the list of sessions names the sign-in method', async () => {
    await opened(await proof());
    const [listed] = await listSessions(database.db.asUser(ann.user.id), ann.user.id);
    expect(listed?.method).toBe('google');
  });

  test.each([
    ['taken away', 'DELETE FROM identities WHERE'],
    ['disabled', 'UPDATE identities SET disabled_at = now() WHERE'],
    ["another's", `UPDATE identities SET user_id = 'operator' WHERE`],
  ])(
    'opens no session if the identity is %s after the proof',
    { tags: 'attack' },
    async (_, change) => {
      const proven = await proof();
      await owner(`${change} id = '${proven.identityId}'`);
      expect(await createSession(database.db, proven, PLACE)).toBeUndefined();
    },
  );
});

describe('a change of the password', () => {
  const change = (currentPassword: string, newPassword = 'another horse') =>
    changePassword(
      database.db,
      { user: ann.user, currentPassword, newPassword, sessionId: 'any', place: PLACE },
      RULES,
    );

  test('changing the password ends all sessions and opens a new one', async () => {
    const before = await opened(ann);
    const { token } = await change(PASSWORD);
    expect(await find(before.token)).toBeUndefined();
    expect(await find(token)).toMatchObject({ user: { id: ann.user.id } });
    const old = { email: ann.user.email, password: PASSWORD, from: HERE };
    expect(await verifyPassword(database.db, old, RULES)).toBeUndefined();
  });

  test(
    'a proof of the old password opens no session after the change',
    { tags: 'attack' },
    async () => {
      await change(PASSWORD);
      expect(await createSession(database.db, ann, PLACE)).toBeUndefined();
    },
  );

  test(
    'concurrent sign-ins with the old password leave no session after the change',
    { tags: 'attack' },
    async () => {
      const [changed, ...others] = await Promise.all([
        change(PASSWORD),
        ...Array.from({ length: 20 }, () => createSession(database.db, ann, PLACE)),
      ]);
      for (const other of others) if (other) expect(await find(other.token)).toBeUndefined();
      expect(await find(changed.token)).toBeDefined();
    },
  );

  test('one of two concurrent password changes succeeds', async () => {
    const outcomes = await Promise.allSettled([change(PASSWORD, 'horse one'), change(PASSWORD)]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });

  test("an ended session cannot set the account's first password", { tags: 'attack' }, async () => {
    const { token } = await opened(ann);
    const { id: sessionId = '' } = (await find(token)) ?? {};
    await owner(`UPDATE users SET password_hash = NULL WHERE id = '${ann.user.id}'`);
    const first = () =>
      changePassword(
        database.db,
        { user: ann.user, newPassword: 'another horse', sessionId, place: PLACE },
        RULES,
      );
    await deleteSession(database.db, token, ORIGIN);
    await expect(first()).rejects.toThrow(UnauthorizedError);
    const shown = { email: ann.user.email, password: 'another horse', from: HERE };
    expect(await verifyPassword(database.db, shown, RULES)).toBeUndefined();
  });

  test('a change with a wrong current password keeps the password', async () => {
    const { token } = await opened(ann);
    await expect(change('correct horsf')).rejects.toThrow(ForbiddenError);
    expect(await find(token)).toBeDefined();
  });
});
