import { randomUUID } from 'node:crypto';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ownWallets } from '../../../src/money/wallets/own-wallets.js';
import { MAX_IMPORTED } from '../../../src/money/wallets/user-wallets.js';
import { openKey } from '../../../src/money/wallets/open-key.js';
import { queryRows } from '../../platform/database/catalog.js';
import { PATH_USD, testChain, type TestChain } from '../../support/chain/chain.js';
import type { CallOptions } from '../../support/http.js';
import { sendJson, startProvider, type ProviderStub } from '../../support/provider-stub.js';
import { walletSite, type Person, type WalletSite } from './support.js';

let chain: TestChain;
/** A site with a chain on which pathUSD is used as USDC, without a wallet provider. */
let site: WalletSite;
let ada: Person;
let bob: Person;

beforeAll(async () => {
  chain = await testChain();
  site = await walletSite({ CHAIN_RPC_URL: chain.rpcUrl, USDC_ADDRESS: PATH_USD });
});
afterAll(async () => {
  await site?.close();
  await chain?.close();
});
beforeEach(async () => {
  [ada, bob] = [await site.person(), await site.person()];
});

const attack = { tags: 'attack' };
const ADDRESS = /^0x[\da-fA-F]{40}$/;

const owner = <Row extends object>(sql: string) => queryRows<Row>(site.database.ownerUrl, sql);
const walletOf = (user?: Person) => site.web(user, 'GET', '/api/wallet');
const act = (user: Person | undefined, action: unknown, options?: CallOptions) =>
  site.web(user, 'POST', '/api/wallet', { body: { action }, ...options });
const bring = (user: Person | undefined, privateKey?: unknown, options?: CallOptions) =>
  site.web(user, 'POST', '/api/wallet/walletprov', { body: { privateKey }, ...options });
const addressOf = (user?: Person) => site.web(user, 'GET', '/api/wallet/address');
const platform = () => site.database.db.asPlatform();
const addressOfKey = (key: `0x${string}`) => privateKeyToAddress(key).toLowerCase();

describe('user wallet', () => {
  test('a user has no wallet until one is created', async () => {
    const { status, body } = await walletOf(ada);
    expect([status, body]).toEqual([
      200,
      {
        address: null,
        balance: '0.000000',
        network: 'tempo',
        hasWallet: false,
        message: expect.any(String),
      },
    ]);
    expect((await act(ada, 'get_seed')).status).toBe(404);
    expect((await addressOf(ada)).body).toEqual({ authenticated: true, address: null });
  });

  test('creates a wallet and shows it with its balance', async () => {
    const made = await act(ada, 'create');
    const { address } = made.body;
    expect([made.status, made.body]).toEqual([
      200,
      { address: expect.stringMatching(ADDRESS), network: 'tempo', message: expect.any(String) },
    ]);
    await chain.pay(address, 1_234_567n);
    const { body } = await walletOf(ada);
    const createdAt = expect.stringMatching(/^\d{4}-.*Z$/);
    expect(body).toEqual({
      address,
      balance: '1.234567',
      network: 'tempo',
      hasWallet: true,
      createdAt,
    });
    const seed = await act(ada, 'get_seed');
    expect([seed.status, seed.body]).toEqual([
      200,
      { address, network: 'tempo', createdAt, warning: expect.any(String) },
    ]);
    expect((await addressOf(ada)).body).toEqual({ authenticated: true, address });
    const stored = address.toLowerCase();
    expect(await ownWallets(platform(), ada.id)).toContain(stored);
    const key = await openKey(platform(), site.dependencies.secrets, stored);
    expect(key && addressOfKey(key)).toBe(stored);
  });

  test('many concurrent creations make one wallet, and only one returns 200', async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => act(ada, 'create')));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(9).fill(400)]);
    const again = await act(ada, 'create');
    expect([again.status, again.body]).toEqual([400, { error: 'A wallet already exists' }]);
  });

  test('a repeated Idempotency-Key returns the first answer', async () => {
    const options = { headers: { 'idempotency-key': 'k' } };
    const [first, again] = [await act(ada, 'create', options), await act(ada, 'create', options)];
    expect([again.status, again.body]).toEqual([200, first.body]);
  });

  test.each<[string, (options: CallOptions) => ReturnType<typeof act>]>([
    ['a wallet created here', (options) => act(ada, 'create', options)],
    ['a wallet with a new key', (options) => bring(ada, undefined, options)],
  ])('%s is created once even if the first answer was lost', async (_name, make) => {
    const key = randomUUID();
    const first = await make({ headers: { 'idempotency-key': key } });
    // Simulates a process that died before its answer was stored.
    await owner(
      `UPDATE idempotency_keys SET state = 'running', locked_until = now() - interval '1 s',
              status = NULL, body = NULL, headers = NULL WHERE key = '${key}'`,
    );
    const again = await make({ headers: { 'idempotency-key': key } });
    expect([again.status, again.body]).toEqual([200, first.body]);
    expect(again.headers.get('idempotent-replayed')).toBeNull();
    const made = await owner(`SELECT address FROM wallets WHERE user_id = '${ada.id}'`);
    expect(made).toEqual([{ address: first.body.address.toLowerCase() }]);
  });

  test('refuses to export the seed, with or without a wallet', async () => {
    expect((await act(ada, 'export_seed')).status).toBe(403);
    await act(ada, 'create');
    expect((await act(ada, 'export_seed')).status).toBe(403);
  });

  test.each([['delete'], [''], ['CREATE'], [1], [undefined]])(
    'refuses the action %j',
    async (action) => {
      expect((await act(ada, action)).status).toBe(400);
    },
  );

  test('the wallet endpoints require a session', async () => {
    for (const answer of [await walletOf(), await act(undefined, 'create'), await bring(undefined)])
      expect([answer.status, answer.body]).toEqual([401, { error: 'Unauthorized' }]);
    expect((await addressOf()).body).toEqual({
      authenticated: false,
      needsAuth: true,
      message: expect.any(String),
    });
  });
});

describe('imported key', () => {
  test('stores an imported key once and returns its address', async () => {
    const key = generatePrivateKey();
    const address = addressOfKey(key);
    const shown = privateKeyToAddress(key);
    const answer = { success: true, address: shown, network: 'base-sepolia' };
    for (const brought of [key, key, `0x${key.slice(2).toUpperCase()}`]) {
      const { status, body } = await bring(ada, brought);
      expect([status, body]).toEqual([200, answer]);
    }
    expect(await owner(`SELECT kind FROM wallets WHERE user_id = '${ada.id}'`)).toEqual([
      { kind: 'imported' },
    ]);
    expect(await openKey(platform(), site.dependencies.secrets, address)).toBe(key);
    expect((await addressOf(ada)).body.address).toBe(shown);
    expect(await ownWallets(platform(), ada.id)).toEqual([address]);
  });

  test('generates a new key if the request has none, or has no body', async () => {
    const first = await bring(ada);
    const second = await site.web(ada, 'POST', '/api/wallet/walletprov');
    expect([first.status, second.status]).toEqual([200, 200]);
    expect(first.body.address).toMatch(ADDRESS);
    expect(second.body.address).not.toBe(first.body.address);
  });

  const ORDER = 'fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141';
  const KEY = generatePrivateKey();
  test.each([
    ['zero', `0x${'0'.repeat(64)}`],
    ["the curve's order", `0x${ORDER}`],
    ['more', `0x${'f'.repeat(64)}`],
    ['one byte too few', KEY.slice(0, -2)],
    ['one byte too many', `${KEY}00`],
    ['no 0x', KEY.slice(2)],
    ['a character that is not hexadecimal', `${KEY.slice(0, -1)}g`],
    ['a line after it', `${KEY}\n`],
    ['a number', 1],
    ['null', null],
  ])('refuses a key with %s, and does not repeat the key', async (_name, key) => {
    const answer = await bring(ada, key);
    expect(answer.status).toBe(400);
    expect(answer.text).not.toContain(String(key).slice(4, 40) || 'nothing');
    expect(await owner(`SELECT id FROM wallets WHERE user_id = '${ada.id}'`)).toEqual([]);
  });

  test('accepts the lowest and the highest valid key', async () => {
    const last = `0x${(BigInt(`0x${ORDER}`) - 1n).toString(16)}`;
    for (const key of [`0x${'1'.padStart(64, '0')}`, last])
      expect((await bring(ada, key)).status).toBe(200);
  });

  test('limits the imported keys of a user, also for concurrent requests', async () => {
    await owner(
      `INSERT INTO wallets (id, user_id, kind, address, sealed_key, created_at)
       SELECT gen_random_uuid(), '${ada.id}', 'imported', '0x' || lpad(to_hex(n), 40, '0'), 'x', now()
         FROM generate_series(2, ${MAX_IMPORTED}) n`,
    );
    const answers = await Promise.all(Array.from({ length: 4 }, () => bring(ada)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400, 400, 400]);
  });

  test('two users may import the same key', async () => {
    const key = generatePrivateKey();
    expect((await bring(ada, key)).status).toBe(200);
    expect((await bring(bob, key)).status).toBe(200);
    const address = addressOfKey(key);
    expect(await openKey(platform(), site.dependencies.secrets, address)).toBe(key);
  });

  test(
    'no imported key appears in a log, an answer, an audit record or a stored answer',
    attack,
    async () => {
      const [good, bad] = [generatePrivateKey(), `${generatePrivateKey()}00`];
      const answers = [];
      for (const [index, key] of [good, good, bad].entries()) {
        const headers = { 'idempotency-key': `brought-${Math.min(index, 1)}` };
        answers.push(await bring(ada, key, { headers }));
      }
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 422]);
      answers.push(await bring(ada, bad, { headers: { 'idempotency-key': 'bad' } }));
      const stored = await owner<{ row: string }>(
        `SELECT t::text AS row FROM idempotency_keys t UNION ALL SELECT t::text FROM audit_log t
        UNION ALL SELECT t::text FROM wallets t`,
      );
      const texts = [...answers.map(({ text }) => text), ...site.logged];
      const all = [...texts, ...stored.map(({ row }) => row)].map((text) => text.toLowerCase());
      for (const key of [good, bad]) {
        expect(all.filter((text) => text.includes(key.slice(2, 66)))).toEqual([]);
      }
    },
  );
});

test("a user's address is the wallet created here, else the provider's wallet, else the first imported key", async () => {
  const shown = async () => (await addressOf(ada)).body.address;
  const first = (await bring(ada, generatePrivateKey())).body.address;
  await bring(ada, generatePrivateKey());
  expect(await shown()).toBe(first);
  const atProvider = `0x${'7'.repeat(40)}`;
  await owner(
    `INSERT INTO wallets (id, user_id, kind, address, created_at)
     VALUES ('${randomUUID()}', '${ada.id}', 'provider', '${atProvider}', now())`,
  );
  expect(await shown()).toBe(atProvider);
  const { address } = (await act(ada, 'create')).body;
  expect(await shown()).toBe(address);
});

test("an unlinked wallet no longer belongs to the user, and a provider's wallet never does", async () => {
  const address = addressOfKey(generatePrivateKey());
  await owner(
    `INSERT INTO identities (id, user_id, kind, issuer, subject, label, created_at)
     VALUES ('${address}', '${ada.id}', 'wallet', 'eip155', '${address}', 'w', now())`,
  );
  await owner(
    `INSERT INTO wallets (id, user_id, kind, address, created_at)
     VALUES ('${randomUUID()}', '${ada.id}', 'provider', '0x${'7'.repeat(40)}', now())`,
  );
  expect(await ownWallets(platform(), ada.id)).toEqual([address]);
  expect(await ownWallets(platform(), bob.id)).not.toContain(address);
  await owner(`DELETE FROM identities WHERE id = '${address}'`);
  expect(await ownWallets(platform(), ada.id)).toEqual([]);
});

test('deleting an account keeps the keys that exist nowhere else, and refuses new ones', async () => {
  const stored = async (answer: ReturnType<typeof act>): Promise<string> =>
    (await answer).body.address.toLowerCase();
  const address = await stored(act(ada, 'create'));
  const made = await stored(bring(ada));
  const brought = await stored(bring(ada, generatePrivateKey()));
  await owner(
    `INSERT INTO account_deletions (user_id, request_id) VALUES ('${ada.id}', 'request')`,
  );
  expect((await bring(ada)).status).toBe(401);
  await owner(`SELECT erase_account('${ada.id}', 1000)`);
  expect(await owner(`SELECT id FROM users WHERE id = '${ada.id}'`)).toEqual([]);
  const left = await owner(
    `SELECT address, kind FROM wallets WHERE user_id = '${ada.id}' ORDER BY created_at`,
  );
  expect(left).toEqual([
    { address, kind: 'user' },
    { address: made, kind: 'imported' },
  ]);
  const { secrets } = site.dependencies;
  for (const kept of [address, made]) {
    expect(await openKey(platform(), secrets, kept)).toMatch(/^0x[\da-f]{64}$/);
  }
  expect(await openKey(platform(), secrets, brought)).toBeUndefined();
});

test('GET /api/wallet/walletprov returns the supported chains', async () => {
  const { status, body } = await site.web(undefined, 'GET', '/api/wallet/walletprov');
  const supportedChains = ['base', 'base-sepolia'];
  expect([status, body]).toEqual([200, { status: 'ok', type: 'evm_wallet', supportedChains }]);
});

describe('wallet balance', () => {
  const balance = (as: Person | undefined, address: string, query: string, options?: CallOptions) =>
    site.backend(as, 'GET', `/api/underground/wallets/${address}/balance${query}`, options);

  test('the owner and the operator get the balance in USDC', async () => {
    const agentId = await site.agentOf(ada);
    const body = { userId: ada.id, agentId };
    const { address } = (await site.backend(ada, 'POST', '/api/underground/wallets', { body }))
      .body;
    await chain.pay(address, 2_500_000n);
    const key = (await site.web(ada, 'POST', '/api/keys', { body: { name: 'program' } })).body.key;
    const byKey = { headers: { authorization: `Bearer ${key}` } };
    for (const answer of [
      await balance(undefined, address, `?userId=${ada.id}`),
      await balance(ada, address.toUpperCase().replace('0X', '0x'), `?userId=${ada.id}`),
      await balance(undefined, address, `?userId=${ada.id}`, byKey),
    ]) {
      expect([answer.status, answer.body]).toEqual([200, { address, balance_usdc: 2.5 }]);
    }
  });

  test("the balance request must name the wallet's owner", async () => {
    const { address } = (await act(ada, 'create')).body;
    expect((await balance(ada, address, '')).status).toBe(400);
    expect((await balance(ada, '0x1', `?userId=${ada.id}`)).status).toBe(400);
    const { status } = await site.backend(
      ada,
      'GET',
      `/api/underground/wallets/${address}/balance`,
      {
        headers: { authorization: 'Bearer nothing' },
      },
    );
    expect(status).toBe(401);
  });

  test('another user cannot read the balance', attack, async () => {
    const { address } = (await act(ada, 'create')).body;
    const key = (await site.web(bob, 'POST', '/api/keys', { body: { name: 'program' } })).body.key;
    const byKey = { headers: { authorization: `Bearer ${key}` } };
    for (const answer of [
      await balance(bob, address, `?userId=${bob.id}`),
      await balance(bob, address, `?userId=${ada.id}`),
      await balance(undefined, address, `?userId=${bob.id}`),
      await balance(undefined, address, `?userId=${ada.id}`, byKey),
    ]) {
      expect([answer.status, answer.body]).toEqual([404, { error: 'Wallet not found' }]);
    }
    expect((await walletOf(bob)).text).not.toContain(address);
    expect((await act(bob, 'get_seed')).status).toBe(404);
  });
});

test(
  'an imported agent wallet with a wrong signature returns 401 if the chain is reachable',
  attack,
  async () => {
    const agentId = await site.agentOf(ada);
    const address = addressOfKey(generatePrivateKey());
    const body = { userId: ada.id, agentId, address, signature: `0x${'11'.repeat(65)}` };
    const { status } = await site.backend(ada, 'POST', '/api/underground/wallets', { body });
    expect(status).toBe(401);
  },
);

describe('while the chain is unavailable', () => {
  let away: WalletSite;
  beforeAll(async () => {
    away = await walletSite({ WALLETPROV_API_KEY: 'a key without an address' });
  });
  afterAll(() => away?.close());

  test('a balance request returns 500 with the reason', async () => {
    const user = await away.person();
    const { address } = (
      await away.web(user, 'POST', '/api/wallet', { body: { action: 'create' } })
    ).body;
    const path = `/api/underground/wallets/${address}/balance?userId=${user.id}`;
    for (const { status, body } of [
      await away.web(user, 'GET', '/api/wallet'),
      await away.backend(user, 'GET', path),
    ]) {
      expect([status, body]).toEqual([500, { error: 'Chain unavailable' }]);
    }
  });

  test('a wallet request names the missing setting of a half-configured provider', async () => {
    const refused = {
      authenticated: false,
      needsAuth: true,
      error: expect.any(String),
      setup: expect.stringContaining('WALLETPROV_API_URL'),
    };
    const path = '/api/wallet/address';
    expect((await away.web(undefined, 'GET', path)).body).toEqual(refused);
    const user = await away.person();
    expect((await away.web(user, 'GET', path)).body).toEqual(refused);
    expect((await away.web(undefined, 'GET', '/api/wallet')).status).toBe(401);
  });
});

describe('wallet provider', () => {
  let provider: ProviderStub;
  let far: WalletSite;
  beforeAll(async () => {
    provider = await startProvider();
    far = await walletSite({
      WALLETPROV_API_URL: provider.baseUrl,
      WALLETPROV_API_KEY: provider.apiKey,
      WALLETPROV_PROJECT_ID: 'our-project',
    });
  });
  afterAll(async () => {
    await far?.close();
    await provider?.close();
  });

  const create = (user: Person | undefined, email?: string) =>
    far.web(user, 'POST', '/api/wallet/create', { body: { email } });
  const verified = async () => {
    const user = await far.person();
    await queryRows(
      far.database.ownerUrl,
      `UPDATE users SET email_verified_at = now() WHERE id = '${user.id}'`,
    );
    return user;
  };
  const ACCOUNT = '0x742d35Cc6634C0532925a3b844Bc454e4438f44e';
  const account = (userId: string) => ({ userId, evmAccountObjects: [{ address: ACCOUNT }] });

  test('an anonymous request gets instructions for creating a wallet', async () => {
    const { status, body } = await far.web(undefined, 'GET', '/api/wallet');
    expect([status, body]).toEqual([
      200,
      {
        agenticWallet: {
          status: 'configured',
          projectId: 'our-project',
          features: expect.any(Array),
        },
        instructions: expect.any(String),
      },
    ]);
  });

  test('creates a wallet at the provider once and returns its address', async () => {
    const user = await verified();
    const asked = provider.requests.length;
    provider.behave(({ body }, response) => sendJson(response, 201, account(body.userId)));
    const first = await create(user, user.email.toUpperCase());
    expect([first.status, first.body]).toEqual([
      200,
      {
        success: true,
        walletAddress: ACCOUNT,
        walletId: user.id,
        networks: ['base', 'base-sepolia'],
      },
    ]);
    const [request] = provider.requests.slice(asked);
    expect(request).toMatchObject({
      path: '/v1/v2/end-users',
      authorization: `Bearer ${provider.apiKey}`,
      body: {
        userId: user.id,
        authenticationMethods: [{ type: 'email', email: user.email }],
        evmAccount: { createSmartAccount: false },
      },
    });
    expect((await create(user, user.email)).body).toEqual(first.body);
    expect(provider.requests).toHaveLength(asked + 1);
    const address = await far.web(user, 'GET', '/api/wallet/address');
    expect(address.body).toEqual({ authenticated: true, address: ACCOUNT });
  });

  test('finds a wallet whose creation response was lost', async () => {
    const user = await verified();
    provider.behave((_request, response) => void response.destroy());
    const lost = await create(user, user.email);
    const details = 'The wallet provider did not answer';
    expect([lost.status, lost.body.details]).toEqual([500, details]);
    provider.behave(({ path }, response) =>
      path.endsWith(`/end-users/${user.id}`)
        ? sendJson(response, 200, account(user.id))
        : sendJson(response, 409, { errorType: 'already_exists' }),
    );
    const answers = await Promise.all([create(user, user.email), create(user, user.email)]);
    for (const { status, body } of answers) {
      expect([status, body.walletAddress]).toEqual([200, ACCOUNT]);
    }
  });

  test.each([
    ['an error', 503, { errorMessage: 'down' }],
    ["somebody else's account", 201, account('another')],
    ['no address', 201, { userId: 'x', evmAccountObjects: [] }],
  ])('an answer with %s creates no wallet', async (_name, status, body) => {
    const user = await verified();
    provider.behave((_request, response) => sendJson(response, status, body));
    const answer = await create(user, user.email);
    expect([answer.status, Object.keys(answer.body).sort()]).toEqual([500, ['details', 'error']]);
    expect(answer.text + far.logged.join('')).not.toContain(provider.apiKey);
  });

  test('follows no redirect of the provider', attack, async () => {
    const user = await verified();
    const asked = provider.requests.length;
    provider.behave((_request, response) => {
      response.writeHead(302, { location: `${provider.baseUrl}/elsewhere` }).end();
    });
    expect((await create(user, user.email)).status).toBe(500);
    expect(provider.requests).toHaveLength(asked + 1);
  });

  test("sends no request for another user's email or an unverified one", attack, async () => {
    const [user, other] = [await verified(), await verified()];
    const unproven = await far.person();
    const asked = provider.requests.length;
    expect((await create(user, other.email)).status).toBe(400);
    expect((await create(unproven, unproven.email)).status).toBe(400);
    expect((await create(user)).status).toBe(400);
    expect((await create(undefined, user.email)).status).toBe(401);
    expect(provider.requests).toHaveLength(asked);
  });

  test('returns 500 with setup instructions if no provider is configured', async () => {
    const without = (email?: string) =>
      site.web(ada, 'POST', '/api/wallet/create', { body: { email } });
    expect((await without()).status).toBe(400);
    const { status, body } = await without('somebody@example.com');
    expect([status, body]).toEqual([
      500,
      { error: expect.any(String), setup: expect.stringContaining('WALLETPROV_API_URL') },
    ]);
  });
});
