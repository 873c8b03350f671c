import type { Hex } from 'viem';
import type { Receipt } from '../chain/answers.js';
import { PATH_USD } from '../chain/tempo.js';
import { transfersOf } from '../chain/transfers.js';

/** What the platform's own wallet has paid for a transaction. */
export interface Fee {
  /** In lower case. */
  readonly payer: Hex;
  /** Base units of pathUSD, more than zero. */
  readonly amount: bigint;
  /** The hash of the block in which it did. */
  readonly block: Hex;
}

/** Base units of pathUSD that somebody has paid for a transaction, as its receipt tells. */
export const feePaidBy = (payer: Hex, receipt: Pick<Receipt, 'logs'>): bigint =>
  transfersOf(receipt)
    .filter(({ from, isFee, token }) => isFee && token === PATH_USD && from === payer)
    .reduce((sum, { amount }) => sum + amount, 0n);

/** For what the ledger books a fee. */
export const feeCause = (hash: string) => `fee:${hash}`;
