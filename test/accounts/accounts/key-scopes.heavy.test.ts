import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { acceptsApiKeys } from '../../../api/auth/key-scope.js';
import { backendEndpoints } from '../../../api/backend/backend.js';
import type { Endpoint } from '../../../api/http/endpoint.js';
import { webEndpoints } from '../../../api/web/web.js';
import {
  newSessionToken,
  sessionTokenContext,
  storedOf,
} from '../../../src/money/sessions/session-token.js';
import { paymentSessions } from '../../../src/platform/database/tables/payment-sessions.js';
import { DEFAULT_KEY_SCOPES, KEY_SCOPES, type KeyScope } from '../../../src/types/key-scopes.js';
import { walletSite, type Person, type WalletSite } from '../../money/wallets/support.js';
import { queryRows } from '../../platform/database/catalog.js';
import { insertRow } from '../../support/insert-row.js';
import { PASSWORD } from '../../support/account.js';
import { newAddress, type CallOptions } from '../../support/http.js';

const ADMIN = 'admin@example.com';

let site: WalletSite;
let ada: Person;

beforeAll(async () => {
  site = await walletSite({ ADMIN_EMAILS: ADMIN });
});
afterAll(() => site?.close());
beforeEach(async () => {
  ada = await site.person();
});

const attack = { tags: 'attack' };
const owner = (sql: string) => queryRows(site.database.ownerUrl, sql);
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

const create = (user: Person, body: object, options?: CallOptions) =>
  site.web(user, 'POST', '/api/keys', { body: { name: 'ci', ...body }, ...options });

/** Creates a key with these scopes. @returns the key's text. */
async function keyWith(...scopes: readonly KeyScope[]): Promise<string> {
  return (await create(ada, { scopes })).body.key;
}

/** Sets the age of a user's sessions. */
const age = (user: Person, interval: string) =>
  owner(
    `UPDATE sessions SET created_at = now() - interval '${interval}' WHERE user_id = '${user.id}'`,
  );

const validate = (key: string) =>
  site.backend(undefined, 'POST', '/api/validate-key', { headers: bearer(key) });

describe('the scopes of a key', () => {
  test('every answer about a key shows its scopes', async () => {
    const scopes = ['files', 'money'];
    const made = await create(ada, { scopes: ['money', 'files', 'money'] });
    expect([made.status, made.body.scopes]).toEqual([201, scopes]);
    const { id, key } = made.body;
    expect((await site.web(ada, 'GET', `/api/keys/${id}`)).body.scopes).toEqual(scopes);
    expect((await site.web(ada, 'GET', '/api/keys')).body.keys).toMatchObject([{ id, scopes }]);
    expect((await validate(key)).body).toMatchObject({ valid: true, scopes });
    const validated = await site.web(ada, 'POST', '/api/keys/validate', { body: { apiKey: key } });
    expect(validated.body).toMatchObject({ valid: true, scopes });
    const exported = await site.web(ada, 'GET', '/api/settings/export');
    expect(JSON.parse(exported.text).keys).toMatchObject([{ id, scopes }]);
  });

  test('a key has all scopes but money by default', async () => {
    const made = await create(ada, {});
    expect([made.status, made.body.scopes]).toEqual([201, ['agents', 'ai', 'files', 'gateway']]);
    expect((await validate(made.body.key)).body.scopes).toEqual(made.body.scopes);
  });

  test.each([[[]], [['root']], ['money'], [null], [Array(6).fill('ai')]])(
    'refuses the scopes %j',
    async (scopes) => {
      expect((await create(ada, { scopes })).status).toBe(400);
      expect((await site.web(ada, 'GET', '/api/keys')).body.keys).toEqual([]);
    },
  );

  test('an old session makes no key that moves money', attack, async () => {
    await age(ada, '1 hour');
    const options = { headers: { 'idempotency-key': randomUUID() } };
    const refused = await create(ada, { scopes: ['money'] }, options);
    expect([refused.status, refused.body.code]).toEqual([403, 'REAUTHENTICATION_REQUIRED']);
    expect((await site.web(ada, 'GET', '/api/keys')).body.keys).toEqual([]);
    expect((await create(ada, { scopes: DEFAULT_KEY_SCOPES })).status).toBe(201);
    // The same request succeeds after signing in again.
    await age(ada, '0 s');
    expect((await create(ada, { scopes: ['money'] }, options)).status).toBe(201);
  });
});

/** Returns all endpoints that accept an API key, with the name of their listener. */
function endpoints(): { readonly listener: 'web' | 'backend'; readonly endpoint: Endpoint }[] {
  return [
    ...webEndpoints(site.dependencies).map((endpoint) => ({ listener: 'web' as const, endpoint })),
    ...backendEndpoints(site.dependencies).map((endpoint) => ({
      listener: 'backend' as const,
      endpoint,
    })),
  ].filter(({ endpoint }) => acceptsApiKeys(endpoint.auth));
}

const nameOf = ({ method, path }: Endpoint) => `${method} ${path}`;

const namesOf = (scope: Endpoint['keyScope']) =>
  endpoints()
    .filter(({ endpoint }) => endpoint.keyScope === scope)
    .map(({ listener, endpoint }) => `${listener} ${nameOf(endpoint)}`)
    .toSorted();

/** Calls an endpoint with a key, with `x` for all parameters. */
const callWith = (
  key: string,
  { listener, endpoint: { method, path } }: ReturnType<typeof endpoints>[number],
) =>
  site[listener](undefined, method, path.replace(/:\w+/g, 'x'), {
    headers: bearer(key),
    from: newAddress(),
    ...(method !== 'GET' && { body: {} }),
  });

describe('endpoints that accept a key', () => {
  test('each declares a scope, and these are open to every key', attack, () => {
    expect(endpoints().length).toBeGreaterThan(60);
    expect(namesOf(undefined)).toEqual([]);
    expect(namesOf('any')).toEqual([
      ...['docs', 'examples', 'github', 'health', 'info', 'setup', 'tools'].map(
        (name) => `backend GET /api/hostmcp/${name}`,
      ),
      ...['docs', 'examples', 'github', 'health', 'info', 'setup', 'tools', 'validate-config'].map(
        (name) => `backend POST /api/hostmcp/${name}`,
      ),
      'backend POST /api/validate-key',
      'web GET /api/auth/token-gating/verify',
      'web GET /api/billing',
      'web GET /api/credits',
      'web GET /api/wallet',
      'web GET /api/wallet/address',
      'web GET /api/wallet/sessions',
      'web POST /api/auth/token-gating/verify',
    ]);
  });

  test(
    'everything that moves the money of wallets that we keep needs the scope money',
    attack,
    () => {
      expect(namesOf('money')).toEqual([
        'backend POST /api/underground/splits',
        'backend POST /api/underground/splits/:id/retry',
        'backend POST /api/underground/wallets',
        'web POST /api/skills/booking-settlement',
        'web POST /api/skills/instant-split',
        'web POST /api/wallet',
        'web POST /api/wallet/create',
        'web POST /api/wallet/sessions',
        'web POST /api/wallet/walletprov',
      ]);
    },
  );

  test('each refuses a key that lacks its scope, and no other key', attack, async () => {
    await owner(
      `UPDATE users SET email = '${ADMIN}', email_verified_at = now() WHERE id = '${ada.id}'`,
    );
    const keys = new Map<KeyScope, { readonly without: string; readonly alone: string }>();
    for (const scope of KEY_SCOPES) {
      const without = await keyWith(...KEY_SCOPES.filter((each) => each !== scope));
      keys.set(scope, { without, alone: await keyWith(scope) });
    }
    for (const each of endpoints()) {
      const { keyScope = 'any' } = each.endpoint;
      if (keyScope === 'any') continue;
      const { alone, without } = keys.get(keyScope) ?? { alone: '', without: '' };
      const refused = await callWith(without, each);
      const reported = refused.body.error?.code === undefined ? refused.body : refused.body.error;
      const answer = { name: nameOf(each.endpoint), status: refused.status, ...reported };
      expect(answer).toMatchObject({
        name: nameOf(each.endpoint),
        status: 403,
        code: 'SCOPE_REQUIRED',
        required: keyScope,
      });
      const admitted = await callWith(alone, each);
      expect(`${nameOf(each.endpoint)} ${admitted.text}`).not.toContain('SCOPE_REQUIRED');
      expect(admitted.status).not.toBe(401);
    }
  });

  test('a key that lacks a scope does not count as a guessed key', async () => {
    const note = vi.spyOn(site.dependencies.refusals, 'note');
    const [files, list] = [await keyWith('files'), '/api/agents'];
    expect((await site.web(undefined, 'GET', list, { headers: bearer(files) })).status).toBe(403);
    expect(note).not.toHaveBeenCalled();
    expect((await site.web(undefined, 'GET', list, { headers: bearer('sk_x') })).status).toBe(401);
    expect(note).toHaveBeenCalledOnce();
    note.mockRestore();
  });

  test('the documents show the scope', async () => {
    const { body: web } = await site.web(undefined, 'GET', '/openapi.json');
    const split = web.paths['/api/skills/instant-split'].post;
    expect(split.security).toEqual([{ session: [] }, { apiKey: ['money'] }]);
    expect(split.description).toContain('API keys need the scope `money`.');
    const list = web.paths['/api/agents'].get;
    expect(list.security).toEqual([{}, { session: [] }, { apiKey: ['agents'] }]);
    expect(Object.keys(list.responses)).toContain('403');
    expect(web.paths['/api/wallet'].get.description).toContain('Any API key.');
    const { body: backend } = await site.backend(undefined, 'GET', '/openapi.json');
    expect(backend.paths['/v1/chat/completions'].post.security).toContainEqual({ apiKey: ['ai'] });
  });
});

describe('wallets', () => {
  test('reads accept any key, and writes a key with the scope money', async () => {
    const [files, money] = [await keyWith('files'), await keyWith('money')];
    const ask = (key: string, method: string, path: string, body?: object) =>
      site.web(undefined, method, path, { headers: bearer(key), ...(body && { body }) });
    const refused = await ask(files, 'POST', '/api/wallet', { action: 'create' });
    expect([refused.status, refused.body]).toEqual([
      403,
      {
        error: 'The API key lacks the scope money: use a key with this scope',
        code: 'SCOPE_REQUIRED',
        required: 'money',
      },
    ]);
    const made = await ask(money, 'POST', '/api/wallet', { action: 'create' });
    expect(made.status).toBe(200);
    const { address } = made.body;
    const shown = await ask(files, 'GET', '/api/wallet/address');
    expect(shown.body).toEqual({ authenticated: true, address });
    const sessions = await ask(files, 'GET', `/api/wallet/sessions?address=${address}`);
    expect([sessions.status, sessions.body]).toEqual([200, { sessions: [] }]);
    expect((await ask('sk_none', 'GET', '/api/wallet/address')).status).toBe(401);
  });

  test('only a key with the scope money sees the ids of payment sessions', attack, async () => {
    const made = await site.web(ada, 'POST', '/api/wallet', { body: { action: 'create' } });
    const address = String(made.body.address).toLowerCase();
    const [id, token] = [randomUUID(), newSessionToken()];
    const sealedToken = site.dependencies.secrets.seal(token, sessionTokenContext(id));
    const hash = `0x${randomUUID().replaceAll('-', '').repeat(2)}`;
    await insertRow(site.database.db.asPlatform(), paymentSessions, {
      ...{ id, ...storedOf(token), sealedToken, address, holdId: hash, nonce: hash },
      ...{ chainId: '4217', escrow: address, deposit: '1000000', state: 'active' },
      authorizationDeadline: new Date(),
      openedAt: new Date(),
      holdExpiresAt: new Date(),
    });
    const path = `/api/wallet/sessions?address=${address}`;
    const idOf = async (key: string) =>
      (await site.web(undefined, 'GET', path, { headers: bearer(key) })).body.sessions[0].id;
    const masked = `ses_…${token.slice(-4)}`;
    expect(await idOf(await keyWith(...DEFAULT_KEY_SCOPES))).toBe(masked);
    expect(await idOf(await keyWith('money'))).toBe(token);
  });
});

describe('the end of keys', () => {
  const isValid = async (key: string) => (await validate(key)).status === 200;
  const change = (user: Person, body: object) =>
    site.web(user, 'POST', '/api/settings/password', {
      body: { currentPassword: PASSWORD, newPassword: randomUUID(), ...body },
    });

  test('a changed password ends all keys', attack, async () => {
    const bob = await site.person();
    const key = await keyWith('agents');
    const ofBob = (await create(bob, {})).body.key;
    expect((await change(ada, {})).status).toBe(200);
    expect([await isValid(key), await isValid(ofBob)]).toEqual([false, true]);
    expect(await owner(`SELECT FROM api_keys WHERE user_id = '${ada.id}'`)).toEqual([]);
  });

  test('a changed password keeps the API keys if the request has keepKeys', async () => {
    const key = await keyWith('agents');
    expect((await change(ada, { keepKeys: 'true' })).status).toBe(400);
    expect((await change(ada, { keepKeys: true })).status).toBe(200);
    expect(await isValid(key)).toBe(true);
  });
});
