import { parseAbi, zeroAddress, type Hex } from 'viem';
import type { ChainNode } from './chain-node.js';

/** The chain's own payment token, with 6 decimals. */
export const PATH_USD: Hex = '0x20c0000000000000000000000000000000000000';

/** The contract that collects fees, each as a transfer to it, and stores each payer's fee token. */
export const FEE_MANAGER: Hex = '0xfeec000000000000000000000000000000000000';

const feeManagerAbi = parseAbi(['function userTokens(address) view returns (address)']);

/** Returns the token that an address pays fees in if a transaction names none. @throws ChainAwayError */
export async function feeTokenOf(node: ChainNode, owner: Hex): Promise<Hex> {
  const call = { abi: feeManagerAbi, functionName: 'userTokens', args: [owner] } as const;
  const chosen = await node.read((client) =>
    client.readContract({ ...call, address: FEE_MANAGER }),
  );
  return chosen === zeroAddress ? PATH_USD : (chosen.toLowerCase() as Hex);
}
