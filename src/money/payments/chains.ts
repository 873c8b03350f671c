import { ChainNode } from '../chain/chain-node.js';
import type { FeeLimits } from '../chain/fee-limits.js';
import type { ChainSettings } from '../chain/settings.js';

/** Tempo, the platform's own chain, and its testnet: their transactions carry several calls. */
const TEMPO_IDS: readonly number[] = [4217, 42_431];

/**
 * Maximum number of calls in one transaction: a new recipient costs 250,000 gas, and a transaction has at
 * most 30 million.
 */
const CALLS_OF_TEMPO = 100;

export const isTempo = (chainId: number): boolean => TEMPO_IDS.includes(chainId);

/** Returns the most calls that one payment on the chain may have; all succeed or all fail. */
export const callsAtOnce = (chainId: number): number => (isTempo(chainId) ? CALLS_OF_TEMPO : 1);

export interface PaymentChain {
  readonly chainId: number;
  readonly node: ChainNode;
  /** Blocks, including a transaction's own, after which it is final. */
  readonly confirmations: number;
  /** Milliseconds for which a transaction waits before its fee is raised. */
  readonly feeBumpAfterMs: number;
  readonly feeLimits: FeeLimits;
}

/** Returns the platform's own chain, and the royalties' chain if it is a different one. */
export function configuredChains({
  chainId,
  confirmations,
  feeBumpAfterMs,
  feeLimits,
  rpcUrl,
  usdc,
}: ChainSettings): readonly [PaymentChain, ...PaymentChain[]] {
  const ownNode = new ChainNode({ chainId, url: rpcUrl });
  const own = { chainId, node: ownNode, confirmations, feeLimits };
  if (usdc.chainId === chainId) return [{ ...own, feeBumpAfterMs }];
  const node = new ChainNode({ chainId: usdc.chainId, url: usdc.rpcUrl });
  const royalties = {
    chainId: usdc.chainId,
    node,
    confirmations: usdc.confirmations,
    feeLimits: usdc.feeLimits,
  };
  return [
    { ...own, feeBumpAfterMs },
    { ...royalties, feeBumpAfterMs },
  ];
}
