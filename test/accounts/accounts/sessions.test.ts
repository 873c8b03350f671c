import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  createApiKey,
  listApiKeys,
  MAX_API_KEYS,
} from '../../../src/accounts/accounts/api-keys.js';
import { changePassword } from '../../../src/accounts/accounts/change-password.js';
import {
  createSession,
  deleteSession,
  findSession,
  listSessions,
  MAX_SESSIONS,
  SESSION_LIFETIME_MS,
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
const find = (token: string) => findSession(database.db, token, RULES);

/** Proof that it is somebody new. */
async function somebody(): Promise<SignInProof> {
  const { id, email, passwordHash } = await makeAccount(database.db);
  return { user: { id, name: email, email, isAdmin: false }, method: 'password', passwordHash };
}

/** A session of theirs, which must come about. */
async function opened(proof: SignInProof, place = {}) {
  const made = await createSession(database.db, proof, { ...PLACE, ...place });
  if (!made) throw new Error('no session was made');
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
  test('is found by its token, with its user and CSRF token, for 30 days', async () => {
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

  test('is stored under the hash of its token alone', async () => {
    const { token } = await opened(ann);
    const rows = await owner('SELECT * FROM sessions');
    expect(JSON.stringify(rows)).not.toContain(token);
    expect(JSON.stringify(rows)).not.toContain((await find(token))?.csrfToken);
    const hash = createHash('sha256').update(token).digest('hex');
    expect(rows.map((row) => row.token_hash)).toContain(hash);
    expect(await find(hash)).toBeUndefined();
  });

  test('is over once it is deleted, and others are not', async () => {
    const [one, other] = [await opened(ann), await opened(ann)];
    await deleteSession(database.db, one.token, ORIGIN);
    await deleteSession(database.db, one.token, ORIGIN);
    expect(await find(one.token)).toBeUndefined();
    expect(await find(other.token)).toBeDefined();
  });

  test('takes the place of the one that the browser came with', async () => {
    const before = await opened(ann);
    const { token } = await opened(ann, { replaces: before.token });
    expect(await find(before.token)).toBeUndefined();
    expect(await find(token)).toBeDefined();
  });

  test.each(['', 'x', 'x'.repeat(43), 'x'.repeat(10_000), "' OR true --"])(
    'is not found by a wrong token (%#)',
    async (token) => {
      expect(await find(token)).toBeUndefined();
      await expect(deleteSession(database.db, token, ORIGIN)).resolves.toBeUndefined();
    },
  );

  test('is over when it expires, and is removed by the pass that removes what is old', async () => {
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
    'that ends while a key is being made in it leaves none behind',
    { tags: 'attack' },
    async () => {
      const userId = ann.user.id;
      const { token } = await opened(ann);
      const { id: sessionId = '' } = (await find(token)) ?? {};
      const tenant = database.db.asUser(userId);
      const make = (name: string) =>
        createApiKey(tenant, { userId, requestId: 'a-request' }, { name, site: 'here', sessionId });
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

  test('makes one key of two at once where there may be one more', async () => {
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
        ['a', 'b'].map((requestId) => createApiKey(tenant, { userId, requestId }, asked)),
      );
      await expect.poll(() => waitingConnections(database.ownerUrl)).toBe(2);
    });
    expect((await both)?.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(await listApiKeys(tenant, userId)).toHaveLength(MAX_API_KEYS);
  });

  test('ends when there are as many newer ones as there may be', async () => {
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

describe('a session by what the account is linked to', () => {
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

  test('says so in the list', async () => {
    await opened(await proof());
    const [listed] = await listSessions(database.db.asUser(ann.user.id), ann.user.id);
    expect(listed?.method).toBe('google');
  });

  test.each([
    ['taken away', 'DELETE FROM identities WHERE'],
    ['disabled', 'UPDATE identities SET disabled_at = now() WHERE'],
    ["another's", `UPDATE identities SET user_id = 'operator' WHERE`],
  ])('is not opened when that is %s meanwhile', { tags: 'attack' }, async (_, change) => {
    const proven = await proof();
    await owner(`${change} id = '${proven.identityId}'`);
    expect(await createSession(database.db, proven, PLACE)).toBeUndefined();
  });
});

describe('a password that is changed', () => {
  const change = (currentPassword: string, newPassword = 'another horse') =>
    changePassword(
      database.db,
      { user: ann.user, currentPassword, newPassword, sessionId: 'any', place: PLACE },
      RULES,
    );

  test('ends all sessions, and gives one in their place', async () => {
    const before = await opened(ann);
    const { token } = await change(PASSWORD);
    expect(await find(before.token)).toBeUndefined();
    expect(await find(token)).toMatchObject({ user: { id: ann.user.id } });
    const old = { email: ann.user.email, password: PASSWORD, from: HERE };
    expect(await verifyPassword(database.db, old, RULES)).toBeUndefined();
  });

  test('opens no session to who proved the old one before', { tags: 'attack' }, async () => {
    await change(PASSWORD);
    expect(await createSession(database.db, ann, PLACE)).toBeUndefined();
  });

  test('leaves no session of the old one, whatever comes at once', { tags: 'attack' }, async () => {
    const [changed, ...others] = await Promise.all([
      change(PASSWORD),
      ...Array.from({ length: 20 }, () => createSession(database.db, ann, PLACE)),
    ]);
    for (const other of others) if (other) expect(await find(other.token)).toBeUndefined();
    expect(await find(changed.token)).toBeDefined();
  });

  test('is changed by one of two at once', async () => {
    const outcomes = await Promise.allSettled([change(PASSWORD, 'horse one'), change(PASSWORD)]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });

  test('is no first one by a session that ends meanwhile', { tags: 'attack' }, async () => {
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

  test('stays as it is when the current one is wrong', async () => {
    const { token } = await opened(ann);
    await expect(change('correct horsf')).rejects.toThrow(ForbiddenError);
    expect(await find(token)).toBeDefined();
  });
});
