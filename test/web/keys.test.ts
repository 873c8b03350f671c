import { TABLES } from '../../src/database/models.js';
import { selectFrom, type RowOf } from '../../src/database/table.js';
import { auditLog } from '../../src/database/tables/records.js';
import { randomUUID } from 'node:crypto';
import bcrypt from 'bcrypt';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MAX_API_KEYS } from '../../src/accounts/api-keys.js';
import { newAddress } from '../support/http.js';
import { testPlatform, type TestPlatform, type TestUser } from '../support/platform.js';

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

/** Every row of every table, as text. */
async function wholeDatabase(): Promise<string> {
  const all: unknown[] = [];
  for (const { name } of TABLES) {
    all.push(await platform.db.asPlatform().query(`SELECT * FROM ${name}`));
  }
  return JSON.stringify(all);
}

describe('a new key', () => {
  test('is shown once, and begins with sk_', async () => {
    const made = await create(ada, { name: '  CI  ' });
    expect(made.status).toBe(201);
    expect(made.body).toEqual({
      id: expect.any(String),
      name: 'CI',
      key: expect.stringMatching(/^sk_[\w-]{43}$/),
      createdAt: expect.stringMatching(TIME),
    });
    expect(made.headers.get('cache-control')).toBe('no-store');

    const { id, key, createdAt } = made.body;
    const item = {
      id,
      name: 'CI',
      keyPreview: `${key.slice(0, 7)}...${key.slice(-4)}`,
      createdAt,
      lastUsed: null,
    };
    expect((await get(ada, id)).body).toEqual(item);
    expect(await list(ada)).toContainEqual(item);
  });

  test('is stored as a bcrypt hash, and is nowhere in the database or the log', async () => {
    const options = { headers: { 'idempotency-key': randomUUID() } };
    const { id, key } = (await create(ada, { name: 'hidden' }, options)).body;
    const row = await platform.db.asUser(ada.id).transaction((db) => db.ApiKey.findByPk(id));
    expect(await bcrypt.compare(key, row?.keyHash ?? '')).toBe(true);
    expect(bcrypt.getRounds(row?.keyHash ?? '')).toBe(10);
    expect(Buffer.byteLength(key)).toBeLessThan(72);

    const everything = await wholeDatabase();
    expect(everything).toContain(id);
    for (const text of [everything, platform.logged.join('\n')]) {
      expect(text).not.toContain(key);
      expect(text).not.toContain(key.slice('sk_'.length));
    }
  });

  test('is the same one when the request comes again with its Idempotency-Key', async () => {
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
  ])('of %j is refused', async (body, error) => {
    const refused = await create(ada, body);
    expect([refused.status, refused.body.error]).toEqual([400, error]);
  });

  test('may have a name of 64 characters of any kind', async () => {
    const name = '😀'.repeat(32);
    expect((await create(ada, { name })).body.name).toBe(name);
  });

  test('is limited by address', async () => {
    const from = newAddress();
    const answers = [];
    for (let i = 0; i < 11; i++) answers.push((await create(ada, {}, { from })).status);
    expect(answers).toEqual([...Array<number>(10).fill(400), 429]);
  });
});

describe('a user', () => {
  test('has at most 50 keys, also when two are made at once', { tags: 'attack' }, async () => {
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
  });

  test("neither sees nor deletes another's", { tags: 'attack' }, async () => {
    const { id } = (await create(ada, { name: 'of Ada' })).body;
    for (const refused of [await get(bob, id), await remove(bob, id)]) {
      expect([refused.status, refused.body.error]).toEqual([404, 'API key not found']);
    }
    const ids = (await list(bob)).map((item: { id: string }) => item.id);
    expect(ids).not.toContain(id);
    expect((await get(ada, id)).status).toBe(200);
  });

  test(
    'who is not signed in gets nowhere, whatever bearer key comes along',
    { tags: 'attack' },
    async () => {
      const { id, key } = (await create(ada, { name: 'bearer' })).body;
      const bearer = { headers: { authorization: `Bearer ${key}` } };
      for (const [method, path] of [
        ['GET', '/api/keys'],
        ['POST', '/api/keys'],
        ['GET', `/api/keys/${id}`],
        ['DELETE', `/api/keys/${id}`],
      ] as const) {
        expect((await platform.web(undefined, method, path)).status).toBe(401);
        expect((await platform.web(undefined, method, path, bearer)).status).toBe(401);
      }
      expect((await get(ada, id)).status).toBe(200);
    },
  );
});

test('a deleted key is gone', async () => {
  const { id } = (await create(ada, { name: 'short-lived' })).body;
  const deleted = await remove(ada, id);
  expect([deleted.status, deleted.body]).toEqual([200, { success: true }]);
  expect((await get(ada, id)).status).toBe(404);
  expect((await remove(ada, id)).status).toBe(404);
});

test('the audit log tells of what is made and deleted', async () => {
  const { id } = (await create(ada, { name: 'audited' })).body;
  await remove(ada, id);
  await remove(ada, id);
  const entries = await platform.db
    .asUser(ada.id)
    .query<RowOf<typeof auditLog>>(`${selectFrom(auditLog)} WHERE subject = $id ORDER BY id`, {
      id,
    });
  expect(entries.map(({ actor, action, detail }) => [actor, action, detail])).toEqual([
    [ada.id, 'api-key.create', { name: 'audited' }],
    [ada.id, 'api-key.delete', {}],
  ]);
  expect(entries.every(({ requestId }) => requestId !== null)).toBe(true);
});
