import { getAddress } from 'viem';
import { describe, expect, test } from 'vitest';
import { chainSettings } from '../../../src/money/chain/settings.js';
import { readAreas } from '../../../src/platform/environment/read.js';
import { SettingsError } from '../../../src/platform/environment/settings-error.js';

const attack = { tags: 'attack' };

const settingsOf = (env: Record<string, string>) => readAreas({ chain: chainSettings }, env).chain;

const KEY = `0x${'0'.repeat(63)}1`;
const NODE = 'http://127.0.0.1:8545';

describe('settings of the chain', () => {
  test('chain settings default to the mainnet with no payments configured', () => {
    expect(settingsOf({})).toMatchObject({
      chainId: 4217,
      testnet: false,
      rpcUrl: undefined,
      treasury: undefined,
      operator: undefined,
      escrow: undefined,
      confirmations: 3,
      feeBumpAfterMs: 30_000,
      usdc: { chainId: 4217, rpcUrl: undefined, address: undefined, confirmations: 3 },
      signInChainIds: [4217],
    });
  });

  test("chain settings have addresses in lower case, and the operator's address from its key", () => {
    const mixed = getAddress(`0x${'ab'.repeat(20)}`);
    const env = { TREASURY_ADDRESS: mixed, ESCROW_ADDRESS: mixed, OPERATOR_PRIVATE_KEY: KEY };
    expect(settingsOf(env)).toMatchObject({
      treasury: mixed.toLowerCase(),
      escrow: mixed.toLowerCase(),
      operator: { privateKey: KEY, address: '0x7e5f4552091a69125d5dfcb7b8c2659029395bdf' },
    });
  });

  test('chain settings accept an operator address beside the key only if they match', () => {
    const own = '0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf';
    const both = settingsOf({ OPERATOR_PRIVATE_KEY: KEY, OPERATOR_ADDRESS: own });
    expect(both.operator).toEqual({ privateKey: KEY, address: own.toLowerCase() });
    const another = { OPERATOR_PRIVATE_KEY: KEY, OPERATOR_ADDRESS: `0x${'a'.repeat(40)}` };
    expect(() => settingsOf(another)).toThrow(
      new SettingsError(['OPERATOR_ADDRESS must be that of OPERATOR_PRIVATE_KEY']),
    );
  });

  test('chain settings use the same node for USDC unless it is on another chain', () => {
    expect(settingsOf({ CHAIN_RPC_URL: NODE }).usdc.rpcUrl).toBe(NODE);
    const elsewhere = settingsOf({ CHAIN_RPC_URL: NODE, USDC_CHAIN_ID: '84532' });
    expect(elsewhere.usdc).toMatchObject({ chainId: 84_532, rpcUrl: undefined });
    expect(elsewhere.signInChainIds).toEqual([4217, 84_532]);
    const testnet = settingsOf({ CHAIN_RPC_URL: NODE, CHAIN_TESTNET: 'true' });
    expect(testnet).toMatchObject({ chainId: 42_431, usdc: { chainId: 42_431, rpcUrl: NODE } });
  });

  test('chain settings limit fees by chain, or as set', attack, () => {
    expect(settingsOf({ USDC_CHAIN_ID: '84532' })).toMatchObject({
      feeLimits: { unit: 500_000_000_000n, transaction: 10n ** 19n },
      usdc: { feeLimits: { unit: 20_000_000_000n, transaction: 5n * 10n ** 15n } },
    });
    const own = { CHAIN_MAX_FEE: '7', CHAIN_MAX_TRANSACTION_FEE: '8' };
    expect(settingsOf(own).usdc.feeLimits).toEqual({ unit: 7n, transaction: 8n });
    const both = { ...own, USDC_CHAIN_ID: '8453', USDC_MAX_FEE: '9' };
    expect(settingsOf(both)).toMatchObject({
      feeLimits: { unit: 7n, transaction: 8n },
      usdc: { feeLimits: { unit: 9n, transaction: 5n * 10n ** 15n } },
    });
  });

  test.each(['0', '-1', '1.5', '1e9', `1${'0'.repeat(30)}`])(
    'chain settings refuse %j as a maximum fee',
    (fee) => {
      expect(() => settingsOf({ CHAIN_MAX_FEE: fee })).toThrow('CHAIN_MAX_FEE must be');
    },
  );

  test.each(['0x1', KEY.slice(2), `0x${'0'.repeat(64)}`, `0x${'f'.repeat(64)}`])(
    'chain settings refuse a malformed private key without showing it: %s',
    (key) => {
      const read = () => settingsOf({ OPERATOR_PRIVATE_KEY: key });
      expect(read).toThrow(
        new SettingsError([
          'OPERATOR_PRIVATE_KEY must be 0x and the 64 hex digits of a private key',
        ]),
      );
    },
  );
});
