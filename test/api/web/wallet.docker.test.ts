import { getAddress, serializeErc6492Signature, type Hex } from 'viem';
import { generatePrivateKey, privateKeyToAccount, type LocalAccount } from 'viem/accounts';
import type { SiweMessage } from 'viem/siwe';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createWeb } from '../../../api/web/web.js';
import { WalletProofs } from '../../../src/accounts/accounts/wallet-proofs.js';
import { ChainNode } from '../../../src/money/chain/chain-node.js';
import { CHAIN_ID, PATH_USD, testChain, type TestChain } from '../../support/chain/chain.js';
import { siweMessage } from '../../support/chain/siwe.js';
import { call, type CallOptions } from '../../support/http.js';
import { DOMAIN, startQuickAuth, type QuickAuthStub } from '../../support/quick-auth.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';

let platform: TestPlatform;
let chain: TestChain;
let quickAuth: QuickAuthStub;

beforeAll(async () => {
  [chain, quickAuth] = await Promise.all([testChain(), startQuickAuth()]);
  platform = await testPlatform({
    workers: false,
    env: {
      PLATFORM_TOKEN_ADDRESS: PATH_USD,
      PLATFORM_TOKEN_RPC_URL: chain.rpcUrl,
      PLATFORM_TOKEN_THRESHOLD: '2.50',
      FARCASTER_AUTH_URL: quickAuth.url,
      FARCASTER_DOMAIN: DOMAIN,
    },
  });
});
afterAll(() => Promise.all([platform?.close(), chain?.close(), quickAuth?.close()]));

const attack = { tags: 'attack' };
const newWallet = () => privateKeyToAccount(generatePrivateKey());

/** Signs a sign-in message with a nonce of the API. */
async function shownBy(wallet: LocalAccount, said: Partial<SiweMessage> = {}) {
  const { nonce } = (await platform.web(undefined, 'GET', '/api/auth/nonce')).body;
  const { address } = wallet;
  const message = siweMessage({ address, nonce, ...said });
  return { address, message, signature: await wallet.signMessage({ message }) };
}

const walletAuth = (body: unknown, options: CallOptions = {}) =>
  platform.web(undefined, 'POST', '/api/wallet-auth', { body, ...options });

/** Signs in with the wallet. @returns the user id and session cookie. */
async function signIn(wallet: LocalAccount): Promise<Pick<TestUser, 'id' | 'cookie'>> {
  const { body, headers, status } = await walletAuth(await shownBy(wallet));
  expect(status).toBe(200);
  const [cookie = ''] = (headers.get('set-cookie') ?? '').split(';');
  return { id: body.user.id, cookie };
}

const session = async (cookie: string) =>
  (await platform.web(undefined, 'GET', '/api/auth/session', { headers: { cookie } })).body;

describe('nonce', () => {
  test.each(['GET', 'POST'])('%s returns a nonce without a session', async (method) => {
    const { status, body, headers } = await platform.web(undefined, method, '/api/auth/nonce');
    expect(status).toBe(200);
    expect(body).toEqual({
      nonce: expect.stringMatching(/^[a-zA-Z\d]{22,}$/),
      expiresAt: expect.any(String),
    });
    const lasts = Date.parse(body.expiresAt) - Date.now();
    expect(lasts).toBeGreaterThan(8 * 60_000);
    expect(lasts).toBeLessThanOrEqual(10 * 60_000);
    expect(headers.get('cache-control')).toBe('no-store');
  });
});

describe('sign-in by wallet', () => {
  test('a first sign-in creates an account for the address and a session', async () => {
    const wallet = newWallet();
    const shown = await shownBy(wallet);
    const { status, body, headers } = await walletAuth(shown);
    expect(status).toBe(200);
    const email = `${wallet.address.toLowerCase()}@wallet.service`;
    expect(body).toEqual({ ok: true, user: { id: expect.any(String), name: email } });
    const [pair = '', ...attributes] = (headers.get('set-cookie') ?? '').split('; ');
    expect(pair).toMatch(/^service-session=[\w-]{43}$/);
    expect(attributes.sort()).toEqual(['HttpOnly', 'Max-Age=2592000', 'Path=/', 'SameSite=Lax']);
    const { user } = await session(pair);
    expect(user).toEqual({ id: body.user.id, name: email, email, isAdmin: false });
    const listed = await platform.web(undefined, 'GET', '/api/auth/sessions', {
      headers: { cookie: pair },
    });
    expect(listed.body.sessions).toMatchObject([{ method: 'wallet', current: true }]);
  });

  test('a later sign-in finds the account, regardless of the case of the address', async () => {
    const wallet = newWallet();
    const first = await signIn(wallet);
    const shown = await shownBy(wallet);
    const again = await walletAuth({ ...shown, address: shown.address.toLowerCase() });
    expect(again.body.user.id).toBe(first.id);
  });

  test('concurrent first sign-ins create one account', async () => {
    const wallet = newWallet();
    const shown = [await shownBy(wallet), await shownBy(wallet), await shownBy(wallet)];
    const answers = await Promise.all(shown.map((each) => walletAuth(each)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(new Set(answers.map(({ body }) => body.user.id)).size).toBe(1);
  });

  test('finds a wallet account without an identity by its address', async () => {
    const wallet = newWallet();
    const email = `${wallet.address.toLowerCase()}@wallet.service`;
    await platform.asOwner(
      `INSERT INTO users (id, email, name, created_at, updated_at)
       VALUES ('${email}', '${email}', 'Ada', now(), now())`,
    );
    expect((await signIn(wallet)).id).toBe(email);
  });

  test("wallet sign-in ends the browser's previous session", attack, async () => {
    const { cookie } = await platform.signUp();
    const shown = await shownBy(newWallet());
    await walletAuth(shown, { headers: { cookie } });
    expect((await session(cookie)).user).toBeNull();
  });

  test('refuses a repeated sign-in message', attack, async () => {
    const shown = await shownBy(newWallet());
    const { status } = await walletAuth(shown);
    const again = await walletAuth(shown);
    expect([status, again.status]).toEqual([200, 401]);
    expect(again.headers.get('set-cookie')).toBeNull();
  });

  test('one of 50 concurrent sign-ins with the same message succeeds', attack, async () => {
    const shown = await shownBy(newWallet());
    const answers = await Promise.all(Array.from({ length: 50 }, () => walletAuth(shown)));
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([200, ...Array<number>(49).fill(401)]);
  });

  test('refuses a message for another service or signed by another key', attack, async () => {
    const wallet = newWallet();
    const elsewhere = await walletAuth(await shownBy(wallet, { domain: 'evil.example' }));
    const { address } = newWallet();
    const { message, signature } = await shownBy(wallet, { address });
    const another = await walletAuth({
      address,
      message,
      signature: `${signature.slice(0, -2)}1b`,
    });
    // If the key does not match the address, the wallet might be a contract, which needs the chain.
    expect([elsewhere.status, another.status]).toEqual([401, 503]);
  });

  test('verifies a contract wallet, deployed or not, on the chain', async () => {
    const { web } = platform.dependencies;
    const { settings, wallets } = web;
    const parts = {
      nonces: wallets.nonces,
      chain: new ChainNode({ chainId: CHAIN_ID, url: chain.rpcUrl }),
      chainIds: settings.chain.signInChainIds,
      webUrl: settings.http.webUrl,
    };
    const there = await createWeb({ ...web, wallets: new WalletProofs(parts) }).listen(
      '127.0.0.1',
      0,
    );
    try {
      const [owner, later, thief] = [newWallet(), newWallet(), newWallet()];
      const ask = (body: unknown) => call(there.url, 'POST', '/api/wallet-auth', { body });
      const deployed = await chain.deployWallet(owner);
      const shown = async (address: Hex, by: LocalAccount) => {
        const message = siweMessage({ address, nonce: wallets.nonces.issue().nonce });
        return { address, message, signature: await by.signMessage({ message }) };
      };
      const signedIn = await ask(await shown(deployed, owner));
      expect([signedIn.status, signedIn.body.user.name]).toEqual([
        200,
        `${deployed.toLowerCase()}@wallet.service`,
      ]);
      expect((await ask(await shown(deployed, thief))).status).toBe(401);
      const { address, data } = chain.deployment(later);
      const toBe = await shown(chain.walletOf(later), later);
      const signature = serializeErc6492Signature({ address, data, signature: toBe.signature });
      const first = await ask({ ...toBe, signature });
      expect(first.status).toBe(200);
      expect((await ask({ ...toBe, signature })).status).toBe(401);
    } finally {
      await there.close();
    }
  });

  test('a contract wallet returns 503 while the chain is unavailable', async () => {
    const wallet = newWallet();
    const refused = await walletAuth({ ...(await shownBy(wallet)), signature: '0xabcd' });
    const error = { error: 'Chain unavailable', retryAfter: 5 };
    expect([refused.status, refused.body]).toEqual([503, error]);
  });

  test.each([
    [{ address: undefined }, 'address is required'],
    [{ message: undefined }, 'message is required'],
    [{ signature: undefined }, 'signature is required'],
    [{ address: 'ada.eth' }, 'address must be 0x and 40 hex digits'],
    [{ message: 'I am Ada' }, 'message must be a sign-in message (EIP-4361)'],
    [{ signature: 'signed' }, 'signature must be hex'],
    [{ address: `0x${'1'.repeat(40)}` }, 'message names another address'],
  ])('wallet sign-in returns 400 for %j', async (change, error) => {
    const { status, body } = await walletAuth({ ...(await shownBy(newWallet())), ...change });
    expect([status, body.error]).toEqual([400, error]);
  });

  test(
    'a wallet account cannot be registered or signed in to with a password',
    attack,
    async () => {
      const wallet = newWallet();
      const email = `${wallet.address.toLowerCase()}@wallet.service`;
      const credentials = { email, password: 'long enough' };
      const squatted = await platform.web(undefined, 'POST', '/api/register', {
        body: credentials,
      });
      expect(squatted.status).toBe(400);
      await signIn(wallet);
      const login = await platform.web(undefined, 'POST', '/api/auth/login', { body: credentials });
      expect(login.status).toBe(401);
    },
  );

  test('refuses a wallet that was removed from its account', attack, async () => {
    const wallet = newWallet();
    const { id } = await signIn(wallet);
    await platform.asOwner(
      `UPDATE identities SET kind = 'google', issuer = 'https://idp.example', subject = '${id}'
        WHERE user_id = '${id}'`,
    );
    expect((await walletAuth(await shownBy(wallet))).status).toBe(401);
  });

  test('refuses a disabled wallet identity', attack, async () => {
    const wallet = newWallet();
    const { id } = await signIn(wallet);
    await platform.asOwner(`UPDATE identities SET disabled_at = now() WHERE user_id = '${id}'`);
    expect((await walletAuth(await shownBy(wallet))).status).toBe(401);
  });
});

describe('token gating', () => {
  const PATH = '/api/auth/token-gating/verify';
  const TERMS = { threshold: '2.5', token: getAddress(PATH_USD), chainId: CHAIN_ID };

  /** Verifies by GET and by POST, which must agree. */
  async function gate(cookie: string | undefined, address?: string) {
    const headers = { ...(cookie !== undefined && { cookie }) };
    const query = address === undefined ? '' : `?address=${address}`;
    const got = await platform.web(undefined, 'GET', `${PATH}${query}`, { headers });
    const posted = await platform.web(undefined, 'POST', PATH, { headers, body: { address } });
    expect([posted.status, posted.body]).toEqual([got.status, got.body]);
    return got;
  }

  test('token gating admits a user whose linked wallet holds enough', async () => {
    const holder = chain.account(3);
    const { cookie } = await signIn(holder);
    const { status, body } = await gate(cookie);
    expect(status).toBe(200);
    expect(body).toEqual({
      verified: true,
      holds: true,
      proven: true,
      address: holder.address,
      balance: expect.stringMatching(/^\d+(\.\d*[1-9])?$/),
      ...TERMS,
    });
    expect((await gate(cookie, holder.address)).body).toEqual(body);
  });

  test('token gating refuses a wallet that holds too little', async () => {
    const wallet = newWallet();
    const { cookie } = await signIn(wallet);
    await chain.pay(wallet.address, 2_499_999n);
    expect((await gate(cookie)).body).toEqual({
      verified: false,
      holds: false,
      proven: true,
      address: wallet.address,
      balance: '2.499999',
      ...TERMS,
    });
  });

  test("token gating refuses another user's wallet", attack, async () => {
    const holder = chain.account(4);
    const { cookie } = await signIn(newWallet());
    const reported = { verified: false, holds: true, proven: false, address: holder.address };
    for (const caller of [cookie, undefined]) {
      const { status, body } = await gate(caller, holder.address);
      expect(status).toBe(200);
      expect(body).toMatchObject(reported);
    }
  });

  test('token gating refuses a user without a wallet', async () => {
    const { cookie } = await platform.signUp();
    expect((await gate(cookie)).body).toEqual({
      verified: false,
      holds: false,
      proven: false,
      address: null,
      balance: '0',
      ...TERMS,
    });
  });

  test('token gating requires a session or an address', async () => {
    expect((await gate(undefined)).status).toBe(400);
    expect((await gate(undefined, '0x12')).status).toBe(400);
  });
});

describe('linking a wallet', () => {
  const link = (user: Pick<TestUser, 'cookie'>, body: unknown) =>
    platform.web(undefined, 'POST', '/api/settings/identities/wallet', {
      body,
      headers: { cookie: user.cookie },
    });

  test('a linked wallet signs its owner in to the account', async () => {
    const user = await platform.signUp();
    const wallet = newWallet();
    const { status, body } = await link(user, await shownBy(wallet));
    expect(status).toBe(201);
    expect(body).toEqual({
      id: expect.any(String),
      kind: 'wallet',
      label: wallet.address,
      createdAt: expect.any(String),
      lastUsedAt: null,
    });
    expect((await signIn(wallet)).id).toBe(user.id);
  });

  test(
    "returns 409 for a wallet that is linked to any account, including the user's own",
    attack,
    async () => {
      const [ada, bob] = [await platform.signUp(), await platform.signUp()];
      const [linked, own] = [newWallet(), newWallet()];
      await link(ada, await shownBy(linked));
      await signIn(own);
      for (const wallet of [linked, own]) {
        expect((await link(bob, await shownBy(wallet))).status).toBe(409);
      }
      expect((await link(ada, await shownBy(linked))).status).toBe(409);
      expect((await signIn(linked)).id).toBe(ada.id);
    },
  );

  test(
    'links a wallet to only one of two accounts that request it concurrently',
    attack,
    async () => {
      const users = [await platform.signUp(), await platform.signUp()];
      const wallet = newWallet();
      const shown = [await shownBy(wallet), await shownBy(wallet)];
      const answers = await Promise.all(users.map((user, n) => link(user, shown[n])));
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 409]);
    },
  );

  test('limits an account to 20 identities, even with concurrent requests', async () => {
    const user = await platform.signUp();
    await platform.asOwner(
      `INSERT INTO identities (id, user_id, kind, issuer, subject, label, created_at)
       SELECT gen_random_uuid()::text, '${user.id}', 'farcaster', 'farcaster', gen_random_uuid()::text, '', now()
         FROM generate_series(1, 19)`,
    );
    const shown = [await shownBy(newWallet()), await shownBy(newWallet())];
    const answers = await Promise.all(shown.map((each) => link(user, each)));
    const [made, refused] = answers.sort((one, other) => one.status - other.status);
    expect(made?.status).toBe(201);
    expect([refused?.status, refused?.body]).toMatchObject([409, { current: 20, limit: 20 }]);
  });

  test('a message is valid once, for sign-in or linking', attack, async () => {
    const user = await platform.signUp();
    const shown = await shownBy(newWallet());
    expect((await walletAuth(shown)).status).toBe(200);
    expect((await link(user, shown)).status).toBe(401);
  });

  test("linking requires the wallet's signature", attack, async () => {
    const user = await platform.signUp();
    const shown = await shownBy(newWallet(), { domain: 'evil.example' });
    expect((await link(user, shown)).status).toBe(401);
    expect((await link(user, { ...shown, signature: 'none' })).status).toBe(400);
    expect((await link({ cookie: '' }, await shownBy(newWallet()))).status).toBe(401);
  });

  test('linking requires a recent sign-in', attack, async () => {
    const user = await platform.signUp();
    await platform.asOwner(
      `UPDATE sessions SET created_at = now() - interval '11 minutes' WHERE user_id = '${user.id}'`,
    );
    const { status, body } = await link(user, await shownBy(newWallet()));
    expect([status, body.code]).toEqual([403, 'REAUTHENTICATION_REQUIRED']);
  });

  test('refuses a cross-site request to link a wallet', attack, async () => {
    const user = await platform.signUp();
    const { status } = await platform.web(user, 'POST', '/api/settings/identities/wallet', {
      body: await shownBy(newWallet()),
      headers: { 'sec-fetch-site': 'cross-site' },
    });
    expect(status).toBe(403);
  });
});

describe('linking a Farcaster account', () => {
  const link = (user: TestUser, token: string) =>
    platform.web(user, 'POST', '/api/settings/identities/farcaster', { body: { token } });

  test("accepts a Quick Auth token or the platform's token for it", async () => {
    const user = await platform.signUp();
    const { status, body } = await link(user, await quickAuth.token(101));
    expect(status).toBe(201);
    expect(body).toEqual({
      id: expect.any(String),
      kind: 'farcaster',
      label: '101',
      createdAt: expect.any(String),
      lastUsedAt: null,
    });
    const verified = await platform.web(undefined, 'POST', '/api/auth/farcaster/verify', {
      body: { token: await quickAuth.token(102) },
    });
    expect((await link(user, verified.body.token)).status).toBe(201);
  });

  test(
    'returns 409 for a Farcaster account that is linked to an account already',
    attack,
    async () => {
      const [ada, bob] = [await platform.signUp(), await platform.signUp()];
      expect((await link(ada, await quickAuth.token(103))).status).toBe(201);
      expect((await link(bob, await quickAuth.token(103))).status).toBe(409);
    },
  );

  test('requires a valid Farcaster token', attack, async () => {
    const user = await platform.signUp();
    const forged = await quickAuth.token(104, { claims: { aud: 'evil.example' } });
    expect((await link(user, forged)).status).toBe(401);
    expect((await link(user, 'x'.repeat(64))).status).toBe(401);
  });
});
