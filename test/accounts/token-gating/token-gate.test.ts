import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ChainAwayError } from '../../../src/money/chain/chain-node.js';
import { NoTokenError, TokenGate } from '../../../src/accounts/token-gating/token-gate.js';
import { CHAIN_ID, PATH_USD, testChain, type TestChain } from '../../support/chain/chain.js';

let chain: TestChain;

beforeAll(async () => {
  chain = await testChain();
});
afterAll(() => chain?.close());

const newAddress = () => privateKeyToAddress(generatePrivateKey()).toLowerCase() as `0x${string}`;

/** A gate without cached answers. */
const gateOf = (changes: Partial<Token> = {}) =>
  new TokenGate({
    platformToken: {
      address: PATH_USD,
      rpcUrl: chain.rpcUrl,
      chainId: CHAIN_ID,
      threshold: '1.50',
      ...changes,
    },
  });
type Token = NonNullable<ConstructorParameters<typeof TokenGate>[0]['platformToken']>;

describe('token gate', () => {
  test('admits holders of at least the required amount, exact to the last unit', async () => {
    const [enough, tooLittle] = [newAddress(), newAddress()];
    await chain.pay(enough, 1_500_000n);
    await chain.pay(tooLittle, 1_499_999n);
    const gate = gateOf();
    expect(await gate.holdingsOf([tooLittle, newAddress(), enough], '192.0.2.1')).toEqual([
      { address: enough, holds: true, balance: '1.5' },
      { address: tooLittle, holds: false, balance: '1.499999' },
      { address: expect.any(String), holds: false, balance: '0' },
    ]);
    expect(gate.terms).toEqual({ token: PATH_USD, chainId: CHAIN_ID, threshold: '1.5' });
  });

  test('queries the chain again when the cached balance has expired', async () => {
    const address = newAddress();
    expect(await gateOf().holdingsOf([address], '192.0.2.1')).toMatchObject([{ holds: false }]);
    await chain.pay(address, 2_000_000n);
    expect(await gateOf().holdingsOf([address], '192.0.2.1')).toMatchObject([{ holds: true }]);
  });

  test.each<[string, () => Partial<Token>]>([
    ['no node is known', () => ({ rpcUrl: undefined })],
    ['no node answers', () => ({ rpcUrl: 'http://127.0.0.1:1' })],
    ['the node is of another chain', () => ({ chainId: 1 })],
    ['no contract is at the address', () => ({ address: newAddress() })],
    [
      'the contract is not a token',
      () => ({ address: `0x4e59b44847b379578588920ca78fbf26c0b4956c` }),
    ],
  ])('the token gate is closed while %s', async (_, changes) => {
    await expect(gateOf(changes()).holdingsOf([newAddress()], '192.0.2.1')).rejects.toThrow(
      ChainAwayError,
    );
  });

  test('the token gate is not available if no token is configured', async () => {
    const gate = new TokenGate({ platformToken: undefined });
    await expect(gate.holdingsOf([newAddress()], '192.0.2.1')).rejects.toThrow(NoTokenError);
  });
});
