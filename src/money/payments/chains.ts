import { ChainNode } from '../chain/chain-node.js';
import type { ChainSettings } from '../chain/settings.js';

/** The platform's own chain, and its test network: their transactions carry several calls. */
const TEMPO_IDS: readonly number[] = [4217, 42_431];

/** A new recipient takes a quarter of a million gas, and no transaction may take more than 30 million. */
const CALLS_OF_TEMPO = 100;

export const isTempo = (chainId: number): boolean => TEMPO_IDS.includes(chainId);

/** How many calls one payment on the chain may have, of which all happen or none. */
export const callsAtOnce = (chainId: number): number => (isTempo(chainId) ? CALLS_OF_TEMPO : 1);

/** A chain on which payments are made. */
export interface PaymentChain {
  readonly chainId: number;
  readonly node: ChainNode;
  /** Blocks that a transaction is in, its own included, when it is final. */
  readonly confirmations: number;
  /** Milliseconds for which a transaction waits before its fee is raised. */
  readonly feeBumpAfterMs: number;
}

/** The platform's own chain, and the one of royalties where that is another. */
export function configuredChains({
  chainId,
  confirmations,
  feeBumpAfterMs,
  rpcUrl,
  usdc,
}: ChainSettings): PaymentChain[] {
  const own = { chainId, node: new ChainNode({ chainId, url: rpcUrl }), confirmations };
  if (usdc.chainId === chainId) return [{ ...own, feeBumpAfterMs }];
  const node = new ChainNode({ chainId: usdc.chainId, url: usdc.rpcUrl });
  const royalties = { chainId: usdc.chainId, node, confirmations: usdc.confirmations };
  return [own, royalties].map((chain) => ({ ...chain, feeBumpAfterMs }));
}
