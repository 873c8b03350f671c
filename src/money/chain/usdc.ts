import type { Hex } from 'viem';
import { ChainAwayError, ChainNode, type Chain } from './chain-node.js';
import { networkName } from './networks.js';
import type { ChainSettings } from './settings.js';

/** USDC on the chain of agents' wallets and royalty splits. It has 6 decimals. */
export class Usdc {
  readonly #token: Hex | undefined;
  readonly #node: Chain;

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
   *
   * @param requester the user or client on whose behalf the chain is read.
   */
  async balanceOf(owner: Hex, requester: string): Promise<bigint> {
    if (this.#token === undefined) throw new ChainAwayError();
    const queries = this.#node.onBehalfOf({ owner: requester, isUrgent: true });
    return queries.tokenBalance(this.#token, owner);
  }
}
