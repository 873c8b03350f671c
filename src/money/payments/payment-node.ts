import * as z from 'zod';
import type { Hex } from 'viem';
import { hexData } from '../chain/answers.js';
import { ChainAwayError, NodeRefusalError, type ChainNode } from '../chain/chain-node.js';
import { PATH_USD } from '../chain/tempo.js';
import { isTempo } from './chains.js';
import type { PaymentCall } from '../../types/payment.js';

/** Of any size, such as what gas costs. */
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

/** What a unit of gas costs: the part of the block, and the miner's. */
export interface Fees {
  readonly base: bigint;
  readonly priority: bigint;
}

/** Fees are reckoned in parts of a dollar with 18 decimals, and paid in one with 6. */
const FEE_PER_UNIT = 1_000_000_000_000n;

/** Used where the node has no opinion. */
const PRIORITY_FEE = 1_000_000_000n;

/** Beyond what calls take now, because what they find may change until then. */
const GAS_RESERVE_PERCENT = 120n;

const inHex = (value: bigint): Hex => `0x${value.toString(16)}`;

/** What is asked of a node to make payments; all may throw a ChainAwayError. */
export class PaymentNode {
  readonly #node: ChainNode;

  constructor(node: ChainNode) {
    this.#node = node;
  }

  /** The number of the newest block. */
  head = () => this.#node.blockNumber();

  /** Undefined while it is not mined. */
  receiptOf = (hash: Hex) => this.#node.receipt(hash);

  /** The next nonce of an account, as of the newest block or an earlier one. */
  async nonceOf(address: Hex, block?: number): Promise<bigint> {
    const at = block === undefined ? 'latest' : inHex(BigInt(block));
    return this.#asked(this.#node.ask('eth_getTransactionCount', [address, at], amount));
  }

  /** Whether an address could pay for so much gas at this price, in what fees are paid in. */
  async canPay(address: Hex, gas: bigint, maxFee: bigint): Promise<boolean> {
    if (isTempo(this.#node.chainId)) {
      return (await this.#node.tokenBalance(PATH_USD, address)) >= (gas * maxFee) / FEE_PER_UNIT;
    }
    const balance = this.#node.ask('eth_getBalance', [address, 'latest'], amount);
    return (await this.#asked(balance)) >= gas * maxFee;
  }

  /** Whether the node has it, mined or not. */
  async knows(hash: Hex): Promise<boolean> {
    const found = this.#node.ask('eth_getTransactionByHash', [hash], z.unknown());
    return (await this.#asked(found)) !== null;
  }

  /** @returns false when the node answers that it will not have it, which says nothing for sure. */
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
   * A limit of gas that is enough for calls one after the other, as of the newest block.
   *
   * @param most that they may take, to which one that is alone is held; as much as a block has when left out.
   * @returns undefined when one of them would be reverted.
   * @throws NodeRefusalError
   */
  async gasOf(
    from: Hex,
    calls: readonly PaymentCall[],
    most?: bigint,
  ): Promise<bigint | undefined> {
    // Simulated, each of several takes what a transaction of its own does: more than they do together.
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

  /** The hashes of a block's transactions; undefined when the node does not have it. */
  async hashesOf(block: number): Promise<readonly Hex[] | undefined> {
    const asked = [inHex(BigInt(block)), false];
    const found = this.#node.ask('eth_getBlockByNumber', asked, blockOfHashes);
    return (await this.#asked(found))?.transactions;
  }

  /** What any node answers, and this one will not. */
  async #asked<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      throw error instanceof NodeRefusalError ? new ChainAwayError({ cause: error }) : error;
    }
  }
}
