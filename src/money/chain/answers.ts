import type { Hex } from 'viem';
import * as z from 'zod';

// The pattern has matched, so the text has viem's hex type.
const hex = (pattern: RegExp) =>
  z
    .string()
    .regex(pattern)
    .transform((text) => text.toLowerCase() as Hex);

export const hexData = hex(/^0x(?:[\da-f]{2})*$/i);
const word = hex(/^0x[\da-f]{64}$/i);
const address = hex(/^0x[\da-f]{40}$/i);
/** A number of blocks, seconds, or a chain's id: a safe integer. */
const count = hex(/^0x[\da-f]{1,13}$/i);
/** A number of any size, such as a gas price. */
const amount = hex(/^0x[\da-f]{1,64}$/i);
const status = z.enum(['0x0', '0x1']);

const receipt = z.object({
  transactionHash: word,
  status,
  blockHash: word,
  blockNumber: count,
  gasUsed: amount,
  logs: z.array(z.object({ address, topics: z.array(word), data: hexData })),
});

const block = z.object({
  hash: word,
  number: count,
  timestamp: count,
  baseFeePerGas: amount.optional(),
  transactions: z.array(word),
});

const simulated = z.object({
  gasLimit: amount,
  calls: z.array(z.object({ status, gasUsed: amount })),
});

/** The shape of each method's answer: viem passes on whatever a node sends, and a wrong answer costs money. */
export const ANSWERS: ReadonlyMap<string, z.ZodType> = new Map<string, z.ZodType>([
  ['eth_blockNumber', count],
  ['eth_call', hexData],
  ['eth_chainId', count],
  ['eth_getBalance', amount],
  ['eth_getBlockByNumber', block.nullable()],
  ['eth_getCode', hexData],
  ['eth_getTransactionByHash', z.object({}).nullable()],
  ['eth_getTransactionCount', count],
  ['eth_getTransactionReceipt', receipt.nullable()],
  ['eth_maxPriorityFeePerGas', amount],
  ['eth_sendRawTransaction', hexData],
  ['eth_simulateV1', z.array(simulated)],
]);

/** An event that a contract has logged; all in lower case. */
export interface Log {
  readonly address: Hex;
  readonly topics: readonly Hex[];
  readonly data: Hex;
}

/** The outcome of a transaction in a block. A reorganization may still remove the block. */
export interface Receipt {
  /** Transaction hash, in lower case. */
  readonly hash: Hex;
  readonly succeeded: boolean;
  readonly blockHash: Hex;
  readonly blockNumber: number;
  readonly gasUsed: bigint;
  /** Event logs; a reverted transaction still has those of its fee. */
  readonly logs: readonly Log[];
}

export interface Block {
  readonly hash: Hex;
  readonly number: number;
  /** Unix seconds. */
  readonly timestamp: number;
  /** Hashes of the block's transactions. */
  readonly transactions: readonly Hex[];
}
