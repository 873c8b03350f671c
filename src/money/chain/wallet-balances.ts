import type { Hex } from 'viem';
import type { ChainNode } from './chain-node.js';
import { feeTokenOf, PATH_USD } from './tempo.js';

/** What an address has of a token. */
export interface TokenBalance {
  readonly token: Hex;
  /** Base units. All tokens that fees are paid in have 6 decimals. */
  readonly units: bigint;
}

/** What an address pays with, and what it pays the chain's fees with. */
export interface WalletBalances {
  readonly feeToken: TokenBalance;
  readonly pathUsd: TokenBalance;
}

/** @throws ChainAwayError */
export async function walletBalances(node: ChainNode, owner: Hex): Promise<WalletBalances> {
  const balanceOf = async (token: Hex): Promise<TokenBalance> => ({
    token,
    units: await node.tokenBalance(token, owner),
  });
  const [token, pathUsd] = await Promise.all([feeTokenOf(node, owner), balanceOf(PATH_USD)]);
  return { feeToken: token === PATH_USD ? pathUsd : await balanceOf(token), pathUsd };
}
