import type { Hex } from 'viem';
import { ChainAwayError, ChainNode } from './chain-node.js';
import { networkName } from './networks.js';
import type { ChainSettings } from './settings.js';

/** USDC on the chain of agents' wallets and royalty splits. It has 6 decimals. */
export class Usdc {
  readonly #token: Hex | undefined;
  readonly #node: ChainNode;

  constructor({ usdc }: Pick<ChainSettings, 'usdc'>) {
    const { address, chainId, rpcUrl: url } = usdc;
    this.#token = address;
    this.#node = new ChainNode({ chainId, url });
  }

  get network(): string {
    return networkName(this.#node.chainId);
  }

  /**
   * Returns the USDC balance of an address in base units. @throws ChainAwayError also if no token is
   * configured.
   */
  async balanceOf(owner: Hex): Promise<bigint> {
    if (this.#token === undefined) throw new ChainAwayError();
    return this.#node.tokenBalance(this.#token, owner);
  }
}
