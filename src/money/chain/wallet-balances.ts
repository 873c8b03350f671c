import type { Hex } from 'viem';
import type { ChainNode } from './chain-node.js';
import { feeTokenOf, PATH_USD } from './tempo.js';

export interface TokenBalance {
  readonly token: Hex;
  /** Base units. All fee tokens have 6 decimals. */
  readonly units: bigint;
}

export interface WalletBalances {
  readonly feeToken: TokenBalance;
  readonly pathUsd: TokenBalance;
}

/**
 * Reads an address's balances.
 *
 * @throws ChainAwayError
 */
export async function walletBalances(node: ChainNode, owner: Hex): Promise<WalletBalances> {
  const balanceOf = async (token: Hex): Promise<TokenBalance> => ({
    token,
    units: await node.tokenBalance(token, owner),
  });
  const [token, pathUsd] = await Promise.all([feeTokenOf(node, owner), balanceOf(PATH_USD)]);
  return { feeToken: token === PATH_USD ? pathUsd : await balanceOf(token), pathUsd };
}
