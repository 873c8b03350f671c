import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DEFAULT_KEY_SCOPES } from '../../../src/types/key-scopes.js';
import { ApiKeyLookup } from '../../../src/accounts/accounts/api-key-lookup.js';
import { until } from '../../support/until.js';
import { call, type Answer } from '../../support/http.js';
import {
  ADMIN_EMAIL,
  testPlatform,
  type TestPlatform,
  type TestUser,
} from '../../support/platform.js';
import { tokenHash } from '../../../src/platform/secrets/token-hash.js';

let platform: TestPlatform;

beforeAll(async () => {
  platform = await testPlatform({ workers: false, dead: ['docker'] });
});
afterAll(() => platform?.close());

const PATH = '/api/validate-key';

interface Made {
  readonly id: string;
  readonly key: string;
}

async function keyOf(user: TestUser): Promise<Made> {
  const made = await platform.web(user, 'POST', '/api/keys', { body: { name: 'test' } });
  return made.body;
}

const validate = (key: string, headers: Record<string, string> = {}): Promise<Answer> =>
  call(platform.backendUrl, 'POST', PATH, {
    headers: { authorization: `Bearer ${key}`, ...headers },
  });

const find = (key: string) =>
  new ApiKeyLookup(platform.db, platform.settings.accounts, platform.log).find(key);

describe('valid key', () => {
  test('a valid key returns its user, the plan and the features', async () => {
    const user = await platform.signUp('solo');
    const { id, key } = await keyOf(user);
    const answer = await validate(key);
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      valid: true,
      userId: user.id,
      scopes: DEFAULT_KEY_SCOPES,
      plan: 'solo',
      features: ['agents', 'chat', 'ai'],
    });
    expect(await find(key)).toMatchObject({
      keyId: id,
      userId: user.id,
      email: user.email,
      isAdmin: false,
      plan: 'solo',
      subscription: 'active',
    });
  });

  test('a valid key on the highest plan returns all features', async () => {
    const { key } = await keyOf(await platform.signUp('network'));
    const { plan, features } = (await validate(key)).body;
    expect(plan).toBe('network');
    expect(features).toEqual(['agents', 'chat', 'ai', 'all-models', 'unlimited-tokens']);
  });

  test('a key of a user without a subscription is valid, but has no features', async () => {
    const { key } = await keyOf(await platform.signUp());
    expect((await validate(key)).body).toMatchObject({ valid: true, plan: null, features: [] });
    expect(await find(key)).toMatchObject({ plan: undefined, subscription: 'none' });
  });

  test.each([
    `status = 'cancelled'`,
    `period_start = now() - interval '2 days', period_end = now() - interval '1 second'`,
  ])('a key has no plan once its subscription has ended: %s', async (end) => {
    const user = await platform.signUp('collective');
    const { key } = await keyOf(user);
    const set = (change: string) =>
      platform.asOwner(`UPDATE subscriptions SET ${change} WHERE user_id = '${user.id}'`);
    await set(`period_end = now() + interval '1 hour'`);
    expect((await validate(key)).body.plan).toBe('collective');
    await set(end);
    expect((await validate(key)).body).toMatchObject({ plan: null, features: [] });
    expect(await find(key)).toMatchObject({ plan: undefined, subscription: 'ended' });
  });

  test("a key of an admin has the highest plan's features", async () => {
    const admin = await platform.signUp(undefined, ADMIN_EMAIL);
    const { key } = await keyOf(admin);
    expect((await validate(key)).body).toMatchObject({ userId: admin.id, plan: 'network' });
    expect(await find(key)).toMatchObject({ isAdmin: true, plan: undefined });
  });

  test('a valid key does not have to begin with sk_', async () => {
    const user = await platform.signUp('label');
    const { id } = await keyOf(user);
    const other = 'a key that was brought along';
    await platform.asOwner(
      `UPDATE api_keys SET lookup_hash = '${tokenHash(other)}' WHERE id = '${id}'`,
    );
    expect((await validate(other)).body).toMatchObject({ userId: user.id, plan: 'label' });
  });

  test('a key acts for its owner, regardless of the other headers', async () => {
    const [user, other] = [await platform.signUp('solo'), await platform.signUp('network')];
    const { key } = await keyOf(user);
    const claims = {
      'x-user-id': other.id,
      'x-user-plan': 'network',
      'x-user-email': ADMIN_EMAIL,
      cookie: other.cookie,
    };
    expect((await validate(key, claims)).body).toMatchObject({ userId: user.id, plan: 'solo' });
  });
});

describe('requests refused with 401', { tags: 'attack' }, () => {
  const unauthorized = (answer: Answer) =>
    expect([answer.status, answer.body.error]).toEqual([401, 'Unauthorized']);

  test('refuses a request without a key or with an unknown key', async () => {
    unauthorized(await call(platform.backendUrl, 'POST', PATH));
    unauthorized(await validate(''));
    unauthorized(await validate(`sk_${'x'.repeat(43)}`));
    unauthorized(await validate(platform.internalKey));
    unauthorized(await validate("' OR true --"));
  });

  test('refuses a key anywhere but in the bearer header', async () => {
    const { key } = await keyOf(await platform.signUp('solo'));
    const asked = (path: string, headers: Record<string, string>) =>
      call(platform.backendUrl, 'POST', path, { headers });
    unauthorized(await asked(`${PATH}?key=${key}&access_token=${key}`, {}));
    unauthorized(await asked(PATH, { cookie: `service-session=${key}; authorization=${key}` }));
    unauthorized(await asked(PATH, { authorization: key }));
    unauthorized(await asked(PATH, { authorization: `Basic ${key}` }));
    unauthorized(await asked(PATH, { 'x-api-key': key }));
  });

  test('refuses the stored hash, preview or id of a key in place of the key', async () => {
    const { id, key } = await keyOf(await platform.signUp('solo'));
    const row = await platform.db.asPlatform().transaction((db) => db.ApiKey.findByPk(id));
    expect(row?.lookupHash).toBe(tokenHash(key));
    for (const stored of [row?.lookupHash, row?.keyHash, row?.keyPreview, id]) {
      unauthorized(await validate(stored ?? ''));
    }
  });

  test('refuses a key from the moment it is deleted', async () => {
    const user = await platform.signUp('solo');
    const { id, key } = await keyOf(user);
    expect((await validate(key)).status).toBe(200);
    await platform.web(user, 'DELETE', `/api/keys/${id}`);
    unauthorized(await validate(key));
  });
});

test('the API reference lists the endpoints that accept an API key', async () => {
  const { paths, components } = (await call(platform.backendUrl, 'GET', '/openapi.json')).body;
  expect(paths[PATH].post.security).toEqual([{ apiKey: [] }]);
  expect(components.securitySchemes.apiKey).toMatchObject({ type: 'http', scheme: 'bearer' });
});

test(
  "refuses a user's key on an endpoint that requires the internal key",
  { tags: 'attack' },
  async () => {
    const { key } = await keyOf(await platform.signUp('network'));
    const headers = { authorization: `Bearer ${key}` };
    expect((await call(platform.backendUrl, 'GET', '/api/agents', { headers })).status).toBe(403);
  },
);

describe('last use of a key', () => {
  const lastUsed = async (user: TestUser, id: string): Promise<string | null> =>
    (await platform.web(user, 'GET', `/api/keys/${id}`)).body.lastUsed;

  /** Sets the last use to a time in the past; uses within a minute of it leave it unchanged. */
  const setBack = (id: string, interval: string) =>
    platform.asOwner(
      `UPDATE api_keys SET last_used = now() - interval '${interval}' WHERE id = '${id}'`,
    );

  test('the last use of a key is stored at the first use and then at most once a minute', async () => {
    const user = await platform.signUp('solo');
    const { id, key } = await keyOf(user);
    expect(await lastUsed(user, id)).toBeNull();
    await Promise.all(Array.from({ length: 10 }, () => validate(key)));
    await until(async () => (await lastUsed(user, id)) !== null);

    await setBack(id, '30 seconds');
    const recent = await lastUsed(user, id);
    await validate(key);
    expect(await lastUsed(user, id)).toBe(recent);

    await setBack(id, '61 seconds');
    const old = await lastUsed(user, id);
    await validate(key);
    await until(async () => (await lastUsed(user, id)) !== old);
    expect(Date.parse((await lastUsed(user, id)) ?? '')).toBeGreaterThan(Date.parse(old ?? ''));
  });

  test('a request succeeds if the last use of its key cannot be stored, and the log reports the failure', async () => {
    const { id, key } = await keyOf(await platform.signUp('solo'));
    await platform.asOwner(`
      CREATE FUNCTION refuse_use() RETURNS trigger LANGUAGE plpgsql AS
        $$BEGIN RAISE EXCEPTION 'on purpose'; END$$;
      CREATE TRIGGER refuse_use BEFORE UPDATE ON api_keys FOR EACH ROW
        WHEN (NEW.id = '${id}') EXECUTE FUNCTION refuse_use();`);
    expect((await validate(key)).status).toBe(200);
    await until(
      () =>
        Promise.resolve(
          platform.logged.some(
            (line) => line.includes('storing the last use') && line.includes(id),
          ),
        ),
      10_000,
    );
    expect((await validate(key)).status).toBe(200);
    expect(platform.logged.join('\n')).not.toContain(key);
  });
});
