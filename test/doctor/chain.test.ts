import { afterAll, beforeAll, expect, test } from 'vitest';
import { examine } from '../../src/doctor/check.js';
import { chainCheck } from '../../src/doctor/chain-check.js';
import { PATH_USD, testChain, type TestChain } from '../support/chain/chain.js';

const NOBODY = '0x00000000000000000000000000000000000000aa';

let chain: TestChain;
beforeAll(async () => {
  chain = await testChain();
});
afterAll(() => chain?.close());

async function findingsOf(env: Readonly<Record<string, string>>): Promise<string[]> {
  const findings = await examine([chainCheck], env);
  return findings.map(({ status, text }) => `${status}: ${text}`);
}

test("names the chain and the operator's money", async () => {
  const { address } = chain.account(0);
  const env = {
    CHAIN_RPC_URL: chain.rpcUrl,
    OPERATOR_ADDRESS: address,
    ESCROW_ADDRESS: PATH_USD,
  };
  expect(await findingsOf(env)).toEqual([
    expect.stringMatching(
      /^ok: The node of chain 4217 answers, at block \d+; a payment is final after 3/,
    ),
    expect.stringMatching(/^ok: The operator's wallet 0x\w+ has [\d.]+ pathUSD for fees\.$/),
  ]);
});

test('names an operator without money and addresses without a contract', async () => {
  const env = {
    CHAIN_RPC_URL: chain.rpcUrl,
    OPERATOR_ADDRESS: NOBODY,
    ESCROW_ADDRESS: NOBODY,
    USDC_ADDRESS: NOBODY,
  };
  const findings = await findingsOf(env);
  expect(findings).toContain(
    `failure: The operator's wallet ${NOBODY} has 0 pathUSD for fees, too little for a payment: send it more.`,
  );
  for (const name of ['ESCROW_ADDRESS', 'USDC_ADDRESS']) {
    expect(findings).toContain(
      `failure: ${name} is ${NOBODY}, and chain 4217 has no contract there: correct ${name}.`,
    );
  }
});

test('names a node of another chain and an unreachable node', async () => {
  expect(await findingsOf({ CHAIN_RPC_URL: chain.rpcUrl, CHAIN_TESTNET: 'true' })).toEqual([
    'failure: The node of chain 42431 does not answer, or not for this chain (The node serves another ' +
      'chain): correct CHAIN_RPC_URL or CHAIN_TESTNET.',
  ]);
  expect(await findingsOf({ CHAIN_RPC_URL: 'http://127.0.0.1:1' })).toEqual([
    expect.stringMatching(
      /^failure: The node of chain 4217 does not answer.*correct CHAIN_RPC_URL/,
    ),
  ]);
});

test('warns of a platform without a chain, and of one that pays nothing', async () => {
  expect(await findingsOf({})).toEqual([
    expect.stringMatching(/^warning: No payments are made: set CHAIN_RPC_URL/),
  ]);
  expect(await findingsOf({ CHAIN_RPC_URL: chain.rpcUrl })).toContainEqual(
    expect.stringMatching(/^warning: The platform pays nothing: set OPERATOR_PRIVATE_KEY/),
  );
});
