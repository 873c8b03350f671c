import type { Hex } from 'viem';
import * as z from 'zod';

/** Up to 13 hex digits; a longer number is no plausible count. */
const QUANTITY = /^0x[\da-f]{1,13}$/i;

// Each pattern is checked before the cast.
const hex = (pattern: RegExp) =>
  z
    .string()
    .regex(pattern)
    .transform((text) => text.toLowerCase() as Hex);

export const hexData = hex(/^0x(?:[\da-f]{2})*$/i);
const word = hex(/^0x[\da-f]{64}$/i);
const address = hex(/^0x[\da-f]{40}$/i);

/** A number of blocks, seconds, or a chain id. */
export const quantity = z.string().regex(QUANTITY).transform(Number);

/** An event log that a contract emitted in a transaction; all in lower case. */
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
  /** Event logs; a reverted transaction still has those of its fee. */
  readonly logs: readonly Log[];
}

/** A block header. */
export interface Block {
  readonly hash: Hex;
  readonly number: number;
  /** Unix seconds. */
  readonly timestamp: number;
}

/** A node's answer for a receipt: null while the transaction is in no block. */
export const receiptAnswer = z
  .object({
    transactionHash: word,
    status: z.enum(['0x0', '0x1']),
    blockHash: word,
    blockNumber: quantity,
    logs: z.array(z.object({ address, topics: z.array(word), data: hexData })),
  })
  .transform(({ transactionHash, status, ...others }): Receipt => ({
    hash: transactionHash,
    succeeded: status === '0x1',
    ...others,
  }))
  .nullable();

export const blockAnswer = z
  .object({ hash: word, number: quantity, timestamp: quantity })
  .nullable();
