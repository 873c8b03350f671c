import type { Hex } from 'viem';
import * as z from 'zod';
import { shownAddress } from '../../src/money/chain/address.js';
import type { ChainNode } from '../../src/money/chain/chain-node.js';
import { chainTitle } from '../../src/money/chain/networks.js';
import type { ChainSettings } from '../../src/money/chain/settings.js';
import { reading } from '../../src/money/chain/unreadable.js';
import { walletBalances, type TokenBalance } from '../../src/money/chain/wallet-balances.js';
import { formatAmount } from '../../src/types/money.js';
import { answeredAddress } from '../views/chain-address.js';

const balanceOfToken = z
  .strictObject({
    address: answeredAddress.describe("Address of the token's contract"),
    balance: z.string().describe('Balance in whole tokens, with six decimals'),
    balanceRaw: z.string().describe('Base units'),
  })
  .meta({ id: 'TokenBalance' });

/** The on-chain balances of an address (spec 4.9). */
export const balancesAnswer = z
  .strictObject({
    address: answeredAddress,
    chain: z.string(),
    chainId: z.number().int(),
    testnet: z.boolean(),
    feeToken: balanceOfToken.describe('The token in which the address pays fees'),
    pathUsd: balanceOfToken,
  })
  .meta({ id: 'Balances' });

/** Returns the public balances of a wallet. @throws ChainUnreadableError */
export async function balancesOf(
  node: ChainNode,
  { chainId, testnet }: Pick<ChainSettings, 'chainId' | 'testnet'>,
  address: Hex,
): Promise<z.output<typeof balancesAnswer>> {
  const { feeToken, pathUsd } = await reading(walletBalances(node, address));
  return {
    address: shownAddress(address),
    chain: chainTitle(testnet),
    chainId,
    testnet,
    feeToken: presentBalance(feeToken),
    pathUsd: presentBalance(pathUsd),
  };
}

const presentBalance = ({ token, units }: TokenBalance) => ({
  address: shownAddress(token),
  balance: formatAmount(units),
  balanceRaw: String(units),
});
