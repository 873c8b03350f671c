import { TABLES } from '../../../src/platform/database/models.js';
import { selectFrom, type RowOf } from '../../../src/platform/database/schema/table.js';
import { auditLog } from '../../../src/platform/database/tables/records.js';
import { randomUUID } from 'node:crypto';
import bcrypt from 'bcrypt';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { anonymous } from '../../../api/auth/anonymous.js';
import { ADMIN_LINK_PATH } from '../../../src/accounts/accounts/admin-links.js';
import { webEndpoints } from '../../../api/web/web.js';
import { MAX_API_KEYS } from '../../../src/accounts/accounts/api-keys.js';
import { DEFAULT_KEY_SCOPES } from '../../../src/types/key-scopes.js';
import { until } from '../../support/until.js';
import { newAddress } from '../../support/http.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';

let platform: TestPlatform;
let ada: TestUser;
let bob: TestUser;

beforeAll(async () => {
  platform = await testPlatform({ workers: false, dead: ['docker'] });
  [ada, bob] = [await platform.signUp(), await platform.signUp()];
});
afterAll(() => platform?.close());

const create = (user: TestUser | undefined, body: unknown, options = {}) =>
  platform.web(user, 'POST', '/api/keys', { body, ...options });
const list = async (user: TestUser) => (await platform.web(user, 'GET', '/api/keys')).body.keys;
const get = (user: TestUser | undefined, id: string) =>
  platform.web(user, 'GET', `/api/keys/${id}`);
const remove = (user: TestUser | undefined, id: string) =>
  platform.web(user, 'DELETE', `/api/keys/${id}`);

const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

/** Returns every row of every table as text. */
async function wholeDatabase(): Promise<string> {
  const all: unknown[] = [];
  for (const { name } of TABLES) {
    all.push(await platform.db.asPlatform().query(`SELECT * FROM ${name}`));
  }
  return JSON.stringify(all);
}

describe('new API key', () => {
  test('shows a new key once, with the prefix sk_', async () => {
    const made = await create(ada, { name: '  CI  ' });
    expect(made.status).toBe(201);
    expect(made.body).toEqual({
      id: expect.any(String),
      name: 'CI',
      key: expect.stringMatching(/^sk_[\w-]{43}$/),
      scopes: DEFAULT_KEY_SCOPES,
      createdAt: expect.stringMatching(TIME),
    });
    expect(made.headers.get('cache-control')).toBe('no-store');

    const { id, key, createdAt } = made.body;
    const item = {
      id,
      name: 'CI',
      keyPreview: `${key.slice(0, 7)}...${key.slice(-4)}`,
      scopes: DEFAULT_KEY_SCOPES,
      createdAt,
      lastUsed: null,
    };
    expect((await get(ada, id)).body).toEqual(item);
    expect(await list(ada)).toContainEqual(item);
  });

  test('stores a key as a bcrypt hash and nowhere in plain text', async () => {
    const options = { headers: { 'idempotency-key': randomUUID() } };
    const { id, key } = (await create(ada, { name: 'hidden' }, options)).body;
    const row = await platform.db.asUser(ada.id).transaction((db) => db.ApiKey.findByPk(id));
    expect(await bcrypt.compare(key, row?.keyHash ?? '')).toBe(true);
    expect(Buffer.byteLength(key)).toBeLessThan(72);

    const everything = await wholeDatabase();
    expect(everything).toContain(id);
    for (const text of [everything, platform.logged.join('\n')]) {
      expect(text).not.toContain(key);
      expect(text).not.toContain(key.slice('sk_'.length));
    }
  });

  test('a repeated Idempotency-Key returns the same key', async () => {
    const options = { headers: { 'idempotency-key': randomUUID() } };
    const before = await list(ada);
    const first = await create(ada, { name: 'once' }, options);
    const again = await create(ada, { name: 'once' }, options);
    expect([again.status, again.body]).toEqual([201, first.body]);
    expect(await list(ada)).toHaveLength(before.length + 1);
    expect((await create(ada, { name: 'other' }, options)).status).toBe(422);
    const ofBob = await create(bob, { name: 'once' }, options);
    expect(ofBob.status).toBe(201);
    expect(ofBob.body.key).not.toBe(first.body.key);
  });

  test.each([
    [{}, 'name is required'],
    [{ name: '' }, 'name is required'],
    [{ name: '   ' }, 'name is required'],
    [{ name: 7 }, 'name must be text'],
    [{ name: 'x'.repeat(65) }, 'name must be at most 64 characters'],
  ])('refuses to create a key from %j', async (body, error) => {
    const refused = await create(ada, body);
    expect([refused.status, refused.body.error]).toEqual([400, error]);
  });

  test('accepts a key name of 64 characters of any kind', async () => {
    const name = '😀'.repeat(32);
    expect((await create(ada, { name })).body.name).toBe(name);
  });

  test('limits key creation per address', async () => {
    const from = newAddress();
    const answers = [];
    for (let i = 0; i < 11; i++) answers.push((await create(ada, {}, { from })).status);
    expect(answers).toEqual([...Array<number>(10).fill(400), 429]);
  });
});

describe('keys of a user', () => {
  test(
    'a user has at most 50 keys, even with concurrent requests',
    { tags: 'attack' },
    async () => {
      const eve = await platform.signUp();
      await platform.asOwner(`
      INSERT INTO api_keys (id, user_id, name, key_preview, key_hash, lookup_hash, created_at)
        SELECT '${eve.id}/' || i, '${eve.id}', 'key ' || i, 'sk_', 'hash', '${eve.id}/' || i,
               now() + make_interval(secs => i) - interval '1 hour'
          FROM generate_series(1, ${MAX_API_KEYS - 1}) AS i`);
      const both = await Promise.all(['a', 'b'].map((name) => create(eve, { name })));
      expect(both.map(({ status }) => status).sort()).toEqual([201, 409]);
      expect(both.find(({ status }) => status === 409)?.body).toMatchObject({
        error: 'API key limit reached: delete one first',
        current: 50,
        limit: 50,
      });
      const keys = await list(eve);
      expect(keys).toHaveLength(MAX_API_KEYS);
      expect(keys[0].name).toBe('key 1');
      await remove(eve, keys.at(-1).id);
      expect((await create(eve, { name: 'again' })).status).toBe(201);
    },
  );

  test("a user can neither see nor delete another user's key", { tags: 'attack' }, async () => {
    const { id } = (await create(ada, { name: 'of Ada' })).body;
    for (const refused of [await get(bob, id), await remove(bob, id)]) {
      expect([refused.status, refused.body.error]).toEqual([404, 'API key not found']);
    }
    const ids = (await list(bob)).map((item: { id: string }) => item.id);
    expect(ids).not.toContain(id);
    expect((await get(ada, id)).status).toBe(200);
  });
});

const byKey = (key: string, headers = {}) => ({
  headers: { authorization: `Bearer ${key}`, ...headers },
});

describe('API key as bearer token', { tags: 'attack' }, () => {
  let key: string;
  beforeAll(async () => {
    key = (await create(ada, { name: 'bearer' })).body.key;
  });

  test('a key replaces the session and authenticates its owner, whatever cookie is sent', async () => {
    await platform.web(ada, 'POST', '/api/heartbeat', { body: { frequency: '7h' } });
    const asked = await platform.web(bob, 'GET', '/api/heartbeat', byKey(key));
    expect([asked.status, asked.body.heartbeat.frequency]).toEqual([200, '7h']);
    const listed = await platform.web(undefined, 'GET', '/api/agents', byKey(key));
    expect([listed.status, listed.body.count]).toEqual([200, 0]);
    // A browser never sends the header by itself, so cross-site requests are allowed.
    const elsewhere = { origin: 'https://elsewhere.example', 'sec-fetch-site': 'cross-site' };
    const changed = await platform.web(undefined, 'POST', '/api/heartbeat', {
      ...byKey(key, elsewhere),
      body: { frequency: '8h' },
    });
    expect(changed.status).toBe(200);
  });

  test.each(['GET /api/heartbeat', 'GET /api/agents', 'GET /api/keys'])(
    'an invalid key is refused by %s, even with a valid cookie',
    async (name) => {
      const [method = '', path = ''] = name.split(' ');
      for (const wrong of [`sk_${'x'.repeat(43)}`, `${key}x`, platform.internalKey]) {
        expect((await platform.web(ada, method, path, byKey(wrong))).status).toBe(401);
      }
    },
  );

  test('a key cannot reach keys, sessions or account settings, even with a valid cookie', async () => {
    const guarded = webEndpoints(platform.dependencies.web).filter(
      ({ method, path, auth }) =>
        /^\/api\/(keys|settings|auth\/(sessions|admin))\b/.test(path) &&
        auth !== anonymous &&
        // A page, which changes nothing.
        !(method === 'GET' && path === ADMIN_LINK_PATH),
    );
    expect(guarded.length).toBeGreaterThan(8);
    for (const { method, path } of guarded) {
      for (const user of [undefined, ada]) {
        const refused = await platform.web(user, method, path, byKey(key));
        expect([method, path, refused.status, refused.body.code]).toEqual([
          ...[method, path, 403, 'SESSION_REQUIRED'],
        ]);
      }
    }
    expect(await list(ada)).not.toEqual([]);
  });

  test('a key has no session and cannot sign one out', async () => {
    const shown = await platform.web(ada, 'GET', '/api/auth/session', byKey(key));
    expect([shown.status, shown.body]).toEqual([200, { user: null }]);
    const out = await platform.web(ada, 'POST', '/api/auth/signout', byKey(key));
    expect([out.status, out.body]).toEqual([200, { ok: true }]);
    expect((await platform.web(ada, 'GET', '/api/auth/session')).body.user.id).toBe(ada.id);
  });
});

describe('validation of an API key', () => {
  const validate = (apiKey: unknown, user: TestUser | undefined = bob) =>
    platform.web(user, 'POST', '/api/keys/validate', { body: { apiKey } });
  const stored = async (id: string) =>
    (await platform.db.asPlatform().transaction((db) => db.ApiKey.findByPk(id)))?.keyPrefix;
  const refused = { status: 401, body: { error: 'Invalid API key' } };

  test('concurrent validations find each its own key', async () => {
    const owners = [ada, bob, ada, bob];
    const keys = await Promise.all(
      owners.map(async (owner) => (await create(owner, { name: 'at once' })).body.key),
    );
    const answers = await Promise.all([
      validate('sk_invented'),
      ...keys.map((key) => validate(key)),
    ]);
    const found = answers.map(({ body, status }) => (status === 200 ? body.userId : status));
    expect(found).toEqual([401, ada.id, bob.id, ada.id, bob.id]);
  });

  test("returns an API key's owner, plan and features", async () => {
    const owner = await platform.signUp('solo');
    const { key } = (await create(owner, { name: 'shown' })).body;
    const reported = await validate(key);
    expect([reported.status, reported.body]).toEqual([
      200,
      {
        valid: true,
        userId: owner.id,
        email: owner.email,
        scopes: DEFAULT_KEY_SCOPES,
        plan: 'solo',
        subscriptionStatus: 'active',
        features: ['agents', 'chat', 'ai'],
      },
    ]);
    expect(reported.headers.get('cache-control')).toBe('no-store');
    await platform.asOwner(
      `UPDATE subscriptions SET status = 'cancelled' WHERE user_id = '${owner.id}'`,
    );
    const ended = { plan: null, subscriptionStatus: 'ended', features: [] };
    expect((await validate(key)).body).toMatchObject(ended);
    const { key: unpaid } = (await create(ada, { name: 'unpaid' })).body;
    expect((await validate(unpaid)).body).toMatchObject({ plan: null, subscriptionStatus: 'none' });
  });

  test.each([undefined, null, 7, ['sk_']])('treats the key %j as missing', async (apiKey) => {
    const answer = await validate(apiKey);
    expect([answer.status, answer.body.error]).toEqual([400, 'apiKey required']);
  });

  test('validating an API key requires a session', { tags: 'attack' }, async () => {
    const { key } = (await create(ada, { name: 'mine' })).body;
    const nobody = await platform.web(undefined, 'POST', '/api/keys/validate', {
      body: { apiKey: key },
    });
    expect(nobody.status).toBe(401);
  });

  test(
    'refuses a key with a changed start or end, and stored hashes',
    { tags: 'attack' },
    async () => {
      const { id, key } = (await create(ada, { name: 'guessed' })).body;
      expect(await stored(id)).toBe(key.slice(0, 10));
      const row = await platform.db.asPlatform().transaction((db) => db.ApiKey.findByPk(id));
      const guesses = [
        ...['', 'sk_', key.slice(3), `pk_${key.slice(3)}`, key.slice(0, 10), `${key}x`, ` ${key}`],
        ...[`${key.slice(0, 10)}${'x'.repeat(36)}`, 'sk_' + 'x'.repeat(100_000)],
        ...[row?.keyHash, row?.lookupHash, row?.keyPreview],
      ];
      for (const guess of guesses) expect(await validate(guess)).toMatchObject(refused);
      expect((await validate(key)).status).toBe(200);
    },
  );

  test(
    'compares the key by bcrypt with every key of the same prefix',
    { tags: 'attack' },
    async () => {
      const [one, other] = [
        (await create(ada, { name: 'one' })).body,
        (await create(bob, { name: 'other' })).body,
      ];
      const set = (id: string, change: string) =>
        platform.asOwner(`UPDATE api_keys SET ${change} WHERE id = '${id}'`);
      await set(other.id, `key_prefix = '${one.key.slice(0, 10)}', lookup_hash = 'of no key'`);
      expect((await validate(one.key)).body).toMatchObject({ userId: ada.id });
      expect(await validate(other.key)).toMatchObject(refused);
      await set(other.id, `key_prefix = '${other.key.slice(0, 10)}'`);
      expect((await validate(other.key)).body).toMatchObject({ userId: bob.id });
      // Refused also after an earlier match, which may be cached.
      await set(other.id, `key_hash = '${await bcrypt.hash('another key', 4)}'`);
      expect(await validate(other.key)).toMatchObject(refused);
      await remove(ada, one.id);
      expect(await validate(one.key)).toMatchObject(refused);
    },
  );

  test('a key stored without a prefix is found by its hash and gets its prefix when used', async () => {
    const { id, key } = (await create(ada, { name: 'old' })).body;
    const uses = [
      () => validate(key),
      () => platform.web(undefined, 'GET', '/api/heartbeat', byKey(key)),
    ];
    for (const use of uses) {
      await platform.asOwner(
        `UPDATE api_keys SET key_prefix = NULL, last_used = NULL WHERE id = '${id}'`,
      );
      expect((await use()).status).toBe(200);
      await until(async () => (await stored(id)) === key.slice(0, 10));
    }
    expect((await get(ada, id)).body.lastUsed).not.toBeNull();
  });
});

test('a deleted key no longer exists', async () => {
  const { id } = (await create(ada, { name: 'short-lived' })).body;
  const deleted = await remove(ada, id);
  expect([deleted.status, deleted.body]).toEqual([200, { success: true }]);
  expect((await get(ada, id)).status).toBe(404);
  expect((await remove(ada, id)).status).toBe(404);
});

test('the audit log records the creation and deletion of a key', async () => {
  const { id } = (await create(ada, { name: 'audited' })).body;
  await remove(ada, id);
  await remove(ada, id);
  const entries = await platform.db
    .asUser(ada.id)
    .query<RowOf<typeof auditLog>>(`${selectFrom(auditLog)} WHERE subject = $id ORDER BY id`, {
      id,
    });
  expect(entries.map(({ actor, action, detail }) => [actor, action, detail])).toEqual([
    [ada.id, 'api-key.create', { name: 'audited', scopes: DEFAULT_KEY_SCOPES }],
    [ada.id, 'api-key.delete', {}],
  ]);
  expect(entries.every(({ requestId }) => requestId !== null)).toBe(true);
});
