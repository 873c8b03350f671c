import type { Hex } from 'viem';
import type { Receipt } from '../chain/answers.js';
import { PATH_USD } from '../chain/tempo.js';
import { transfersOf } from '../chain/transfers.js';

/** A transaction fee that the platform's own wallet has paid. */
export interface Fee {
  /** In lower case. */
  readonly payer: Hex;
  /** Base units of pathUSD, more than zero. */
  readonly amount: bigint;
  /** Hash of the block of the transaction. */
  readonly block: Hex;
}

/** Returns the base units of pathUSD that `payer` paid for a transaction, from its receipt. */
export const feePaidBy = (payer: Hex, receipt: Pick<Receipt, 'logs'>): bigint =>
  transfersOf(receipt)
    .filter(({ from, isFee, token }) => isFee && token === PATH_USD && from === payer)
    .reduce((sum, { amount }) => sum + amount, 0n);

/** Returns the cause of a fee in the ledger. */
export const feeCause = (hash: string) => `fee:${hash}`;
