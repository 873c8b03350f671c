import type { Hex } from 'viem';
import * as z from 'zod';

/** More would be no count of anything. */
const QUANTITY = /^0x[\da-f]{1,13}$/i;

// Each has its form looked at before it is called so.
const hex = (pattern: RegExp) =>
  z
    .string()
    .regex(pattern)
    .transform((text) => text.toLowerCase() as Hex);

export const hexData = hex(/^0x(?:[\da-f]{2})*$/i);
const word = hex(/^0x[\da-f]{64}$/i);
const address = hex(/^0x[\da-f]{40}$/i);

/** A number of blocks, seconds, or a chain's id. */
export const quantity = z.string().regex(QUANTITY).transform(Number);

/** What a contract has told while a transaction ran; all in lower case. */
export interface Log {
  readonly address: Hex;
  readonly topics: readonly Hex[];
  readonly data: Hex;
}

/** What became of a transaction that is in a block. It may be reorganised away from there. */
export interface Receipt {
  /** In lower case. */
  readonly hash: Hex;
  readonly succeeded: boolean;
  readonly blockHash: Hex;
  readonly blockNumber: number;
  /** Those of its fee are there as well if it was reverted. */
  readonly logs: readonly Log[];
}

/** A block's head. */
export interface Block {
  readonly hash: Hex;
  readonly number: number;
  /** Unix seconds. */
  readonly timestamp: number;
}

/** What nodes say of a transaction: null while it is in no block. */
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
