import { getAddress } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { userWalletEndpoints } from '../../../api/web/user-wallets.js';
import { ChainNode } from '../../../src/money/chain/chain-node.js';
import { chainSettings } from '../../../src/money/chain/settings.js';
import { PATH_USD } from '../../../src/money/chain/tempo.js';
import { Usdc } from '../../../src/money/chain/usdc.js';
import { readAreas } from '../../../src/platform/environment/read.js';
import { walletProviderSettings } from '../../../src/money/wallets/provider/settings.js';
import { WalletProvider } from '../../../src/money/wallets/provider/wallet-provider.js';
import { UserWallets } from '../../../src/money/wallets/user-wallets.js';
import { serve, type TestListener } from '../../api/http/support.js';
import { CHAIN_ID, testChain, type TestChain } from '../../support/chain/chain.js';
import { rpcProxy } from '../../support/chain/rpc-proxy.js';
import { testSecrets } from '../../support/secrets.js';

const ALPHA_USD = '0x20c0000000000000000000000000000000000001';

let chain: TestChain;
let listener: TestListener;

beforeAll(async () => {
  chain = await testChain();
  listener = await serveOn(chain.rpcUrl);
});
afterAll(() => Promise.all([listener?.close(), chain?.close()]));

function serveOn(url: string | undefined, env: Record<string, string> = {}): Promise<TestListener> {
  const settings = readAreas({ chain: chainSettings, walletProvider: walletProviderSettings }, env);
  const node = new ChainNode({ chainId: settings.chain.chainId, url });
  const walletProvider = new WalletProvider(settings.walletProvider);
  const userWallets = new UserWallets({ secrets: testSecrets(), provider: walletProvider });
  const usdc = new Usdc(settings.chain);
  return serve(userWalletEndpoints({ chain: node, settings, usdc, userWallets, walletProvider }));
}

async function ask(query: string, { call }: Pick<TestListener, 'call'> = listener) {
  const response = await call(`/api/wallet${query}`);
  return { status: response.status, body: await response.json() };
}

const newAccount = () => privateKeyToAccount(generatePrivateKey());

describe('GET /api/wallet?address=', () => {
  test("the wallet endpoint returns an address's balances, with six decimals and in base units", async () => {
    const { address } = newAccount();
    await chain.pay(address, 12_345_678n);
    const balance = { address: getAddress(PATH_USD), balance: '12.345678', balanceRaw: '12345678' };
    expect(await ask(`?address=${address}`)).toEqual({
      status: 200,
      body: {
        address,
        chain: 'Tempo',
        chainId: CHAIN_ID,
        testnet: false,
        feeToken: balance,
        pathUsd: balance,
      },
    });
  });

  test('the wallet endpoint returns the chain, including the test network', async () => {
    const proxy = await rpcProxy(chain.rpcUrl);
    proxy.fate = (method) => (method === 'eth_chainId' ? { result: '0xa5bf' } : undefined);
    const testnet = await serveOn(proxy.url, { CHAIN_TESTNET: 'true' });
    try {
      const { body, status } = await ask(`?address=${newAccount().address}`, testnet);
      expect([status, body]).toMatchObject([
        200,
        { chain: 'Tempo Testnet', chainId: 42_431, testnet: true },
      ]);
    } finally {
      await testnet.close();
      await proxy.close();
    }
  });

  test('the wallet endpoint returns zero balances for an unused address', async () => {
    const none = { address: getAddress(PATH_USD), balance: '0.000000', balanceRaw: '0' };
    const { body } = await ask(`?address=${newAccount().address}`);
    expect(body).toMatchObject({ feeToken: none, pathUsd: none });
  });

  test('the wallet endpoint returns the token that the address has chosen for its fees', async () => {
    const { body } = await ask(`?address=${chain.account(0).address}`);
    expect(body).toMatchObject({
      feeToken: { address: getAddress(ALPHA_USD), balance: expect.stringMatching(/^\d+\.\d{6}$/) },
      pathUsd: { address: getAddress(PATH_USD) },
    });
  });

  test.each([
    '?address=',
    '?address=0x1',
    `?address=${'1'.repeat(40)}`,
    `?address=0X${'1'.repeat(40)}`,
    `?address=0x${'g'.repeat(40)}`,
    `?address=0x${'1'.repeat(41)}`,
    `?address=0x${'1'.repeat(40)}&address=0x${'2'.repeat(40)}`,
  ])('the wallet endpoint answers 400 to %j without a request to the chain', async (query) => {
    const away = await serveOn(undefined);
    try {
      expect((await ask(query, away)).status).toBe(400);
    } finally {
      await away.close();
    }
  });

  test.each<[string, () => string | undefined, Record<string, string>]>([
    ['no node is known', () => undefined, {}],
    ['no node answers', () => 'http://127.0.0.1:1', {}],
    ['the node is of another chain', () => chain.rpcUrl, { CHAIN_TESTNET: 'true' }],
  ])('the wallet endpoint answers 500 "Chain unavailable" while %s', async (_, url, env) => {
    const away = await serveOn(url(), env);
    try {
      expect(await ask(`?address=0x${'1'.repeat(40)}`, away)).toEqual({
        status: 500,
        body: { error: 'Chain unavailable' },
      });
    } finally {
      await away.close();
    }
  });
});
