import type { Hex } from 'viem';
import { ChainAwayError, NodeRefusalError, type ChainNode } from '../chain/chain-node.js';
import { PATH_USD } from '../chain/tempo.js';
import { isTempo } from './chains.js';
import type { PaymentCall } from '../../types/payment.js';

/** Prices of a unit of gas: the block's base fee and the miner's priority fee. */
export interface Fees {
  readonly base: bigint;
  readonly priority: bigint;
}

/** Fees are calculated with 18 decimals of a dollar and paid with 6. */
const FEE_PER_UNIT = 1_000_000_000_000n;

/** The priority fee if the node suggests none. */
const PRIORITY_FEE = 1_000_000_000n;

/** Percent of the estimated gas to allow: state may change before the calls run. */
const GAS_RESERVE_PERCENT = 120n;

/** Requests to a node that payments need; all may throw a ChainAwayError. */
export class PaymentNode {
  readonly #node: ChainNode;

  constructor(node: ChainNode) {
    this.#node = node;
  }

  head = () => this.#node.blockNumber();

  /** Returns the receipt of a transaction, or undefined until it is mined. */
  receiptOf = (hash: Hex) => this.#node.receipt(hash);

  /** Returns the next nonce of an account, as of the newest block or an earlier one. */
  async nonceOf(address: Hex, block?: number): Promise<bigint> {
    const blockNumber = block === undefined ? undefined : BigInt(block);
    const count = this.#node.read((client) => client.getTransactionCount({ address, blockNumber }));
    return BigInt(await count);
  }

  /** Reports whether an address can pay for the gas at this price, in the chain's fee currency. */
  async canPay(address: Hex, gas: bigint, maxFee: bigint): Promise<boolean> {
    if (isTempo(this.#node.chainId)) {
      return (await this.#node.tokenBalance(PATH_USD, address)) >= (gas * maxFee) / FEE_PER_UNIT;
    }
    return (await this.#node.read((client) => client.getBalance({ address }))) >= gas * maxFee;
  }

  /** Reports whether the node has a transaction, mined or not. */
  async knows(hash: Hex): Promise<boolean> {
    const found = this.#node.read((client) =>
      client.request({ method: 'eth_getTransactionByHash', params: [hash] }),
    );
    return (await found) !== null;
  }

  /** Sends a transaction to the node; false if the node rejects it, though it may still be mined. */
  async broadcast(raw: Hex): Promise<boolean> {
    try {
      await this.#node.send((client) => client.sendRawTransaction({ serializedTransaction: raw }));
      return true;
    } catch (error) {
      if (error instanceof NodeRefusalError) return false;
      throw error;
    }
  }

  async fees(): Promise<Fees> {
    const block = this.#node.read((client) => client.getBlock());
    const tip = this.#node
      .send((client) => client.request({ method: 'eth_maxPriorityFeePerGas' }))
      .then(BigInt, (error: unknown) => {
        if (error instanceof NodeRefusalError) return PRIORITY_FEE;
        throw error;
      });
    const [{ baseFeePerGas: base }, priority] = await Promise.all([block, tip]);
    if (base === null) throw new ChainAwayError({ cause: new Error('A block has no base fee') });
    return { base, priority };
  }

  /**
   * Estimates a gas limit for calls in sequence; undefined if a call would revert. @throws NodeRefusalError
   *
   * @param most upper limit of a single call; the block's gas limit by default.
   * @param at number of the block on which the calls are simulated; the latest by default.
   */
  async gasOf(
    from: Hex,
    calls: readonly PaymentCall[],
    most?: bigint,
    at?: number,
  ): Promise<bigint | undefined> {
    // In the simulation each of several calls costs as much as its own transaction: more than together.
    const gas = calls.length === 1 ? most : undefined;
    const requests = calls.map((call) => ({ ...call, from, gas }));
    const [block] = await this.#node.send((client) =>
      client.simulateBlocks({
        blocks: [{ calls: requests }],
        ...(at !== undefined && { blockNumber: BigInt(at) }),
      }),
    );
    if (!block?.calls.every(({ status }) => status === 'success')) return undefined;
    const used = block.calls.reduce((sum, { gasUsed }) => sum + gasUsed, 0n);
    const reserved = (used * GAS_RESERVE_PERCENT) / 100n;
    return reserved < block.gasLimit ? reserved : block.gasLimit;
  }

  /** Returns the hashes of a block's transactions; undefined if the node does not have the block. */
  hashesOf = async (block: number) => (await this.#node.block(block))?.transactions;
}
