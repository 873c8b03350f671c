import * as z from 'zod';
import type { Hex } from 'viem';
import { hexData } from '../chain/answers.js';
import { ChainAwayError, NodeRefusalError, type ChainNode } from '../chain/chain-node.js';
import { PATH_USD } from '../chain/tempo.js';
import { isTempo } from './chains.js';
import type { PaymentCall } from '../../types/payment.js';

/** An integer of any size, such as a gas price. */
const amount = z
  .string()
  .regex(/^0x[\da-f]{1,64}$/i)
  .transform(BigInt);

const latestBlock = z.object({ baseFeePerGas: amount });
const blockOfHashes = z.object({ transactions: z.array(hexData) }).nullable();

const simulation = z.array(
  z.object({
    gasLimit: amount,
    calls: z.array(z.object({ status: z.enum(['0x0', '0x1']), gasUsed: amount })),
  }),
);

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

const inHex = (value: bigint): Hex => `0x${value.toString(16)}`;

/** Requests to a node that payments need; all may throw a ChainAwayError. */
export class PaymentNode {
  readonly #node: ChainNode;

  constructor(node: ChainNode) {
    this.#node = node;
  }

  /** The number of the newest block. */
  head = () => this.#node.blockNumber();

  /** Returns the receipt of a transaction, or undefined until it is mined. */
  receiptOf = (hash: Hex) => this.#node.receipt(hash);

  /** Returns the next nonce of an account, as of the newest block or an earlier one. */
  async nonceOf(address: Hex, block?: number): Promise<bigint> {
    const at = block === undefined ? 'latest' : inHex(BigInt(block));
    return this.#asked(this.#node.ask('eth_getTransactionCount', [address, at], amount));
  }

  /** Reports whether an address can pay for the gas at this price, in the chain's fee currency. */
  async canPay(address: Hex, gas: bigint, maxFee: bigint): Promise<boolean> {
    if (isTempo(this.#node.chainId)) {
      return (await this.#node.tokenBalance(PATH_USD, address)) >= (gas * maxFee) / FEE_PER_UNIT;
    }
    const balance = this.#node.ask('eth_getBalance', [address, 'latest'], amount);
    return (await this.#asked(balance)) >= gas * maxFee;
  }

  /** Reports whether the node has a transaction, mined or not. */
  async knows(hash: Hex): Promise<boolean> {
    const found = this.#node.ask('eth_getTransactionByHash', [hash], z.unknown());
    return (await this.#asked(found)) !== null;
  }

  /** Sends a transaction to the node; false if the node rejects it, though it may still be mined. */
  async broadcast(raw: Hex): Promise<boolean> {
    try {
      await this.#node.ask('eth_sendRawTransaction', [raw], hexData);
      return true;
    } catch (error) {
      if (error instanceof NodeRefusalError) return false;
      throw error;
    }
  }

  async fees(): Promise<Fees> {
    const block = this.#node.ask('eth_getBlockByNumber', ['latest', false], latestBlock);
    const tip = this.#node.ask('eth_maxPriorityFeePerGas', [], amount).catch((error: unknown) => {
      if (error instanceof NodeRefusalError) return PRIORITY_FEE;
      throw error;
    });
    const [{ baseFeePerGas: base }, priority] = await Promise.all([this.#asked(block), tip]);
    return { base, priority };
  }

  /**
   * Estimates a gas limit for calls in sequence, as of the newest block.
   *
   * @param most upper limit, applied to a single call; the block's gas limit by default.
   * @returns undefined if a call would revert.
   * @throws NodeRefusalError
   */
  async gasOf(
    from: Hex,
    calls: readonly PaymentCall[],
    most?: bigint,
  ): Promise<bigint | undefined> {
    // In the simulation each of several calls costs as much as its own transaction: more than together.
    const isOne = calls.length === 1;
    const asked = calls.map(({ to, data, value }) => ({
      from,
      to,
      input: data,
      value: inHex(value),
      ...(isOne && most !== undefined && { gas: inHex(most) }),
    }));
    const simulated = [{ blockStateCalls: [{ calls: asked }] }, 'latest'];
    const [block] = await this.#node.ask('eth_simulateV1', simulated, simulation);
    if (!block?.calls.every(({ status }) => status === '0x1')) return undefined;
    const used = block.calls.reduce((sum, { gasUsed }) => sum + gasUsed, 0n);
    const reserved = (used * GAS_RESERVE_PERCENT) / 100n;
    return reserved < block.gasLimit ? reserved : block.gasLimit;
  }

  /** Returns the hashes of a block's transactions; undefined if the node does not have the block. */
  async hashesOf(block: number): Promise<readonly Hex[] | undefined> {
    const asked = [inHex(BigInt(block)), false];
    const found = this.#node.ask('eth_getBlockByNumber', asked, blockOfHashes);
    return (await this.#asked(found))?.transactions;
  }

  /** Treats a node's refusal of a basic request as an unavailable node. */
  async #asked<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      throw error instanceof NodeRefusalError ? new ChainAwayError({ cause: error }) : error;
    }
  }
}
