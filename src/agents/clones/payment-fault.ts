import type { Hex } from 'viem';
import type { Receipt } from '../../money/chain/answers.js';
import { PATH_USD } from '../../money/chain/tempo.js';
import { transfersOf, type TokenTransfer } from '../../money/chain/transfers.js';

/** Addresses are in lower case. */
export interface DuePayment {
  readonly payer: string;
  readonly treasury: Hex;
  /** Base units. */
  readonly amount: bigint;
}

export type PaymentFault =
  | 'reverted'
  | 'wrong_token'
  | 'wrong_recipient'
  | 'wrong_sender'
  | 'underpaid';

/**
 * Returns why a transaction is not the payment; undefined if its pathUSD transfers from payer to treasury add
 * up to the price. Its recipient field is ignored: one of several calls names none, and the fee is a
 * transfer.
 */
export function paymentFaultOf(receipt: Receipt, due: DuePayment): PaymentFault | undefined {
  if (!receipt.succeeded) return 'reverted';
  const made = transfersOf(receipt).filter(({ isFee }) => !isFee);
  const toTreasury = made.filter(({ to }) => to === due.treasury);
  const ofToken = made.filter(isOfToken);
  if (!toTreasury.some(isOfToken)) {
    const isOfAnother = toTreasury.length > 0 || (made.length > 0 && ofToken.length === 0);
    return isOfAnother ? 'wrong_token' : 'wrong_recipient';
  }
  const paid = paidBy(receipt, due);
  if (paid === 0n) return 'wrong_sender';
  return paid < due.amount ? 'underpaid' : undefined;
}

/** Returns the base units of pathUSD from payer to treasury; a transfer to itself counts as none. */
export const paidBy = (
  receipt: Receipt,
  { payer, treasury }: Pick<DuePayment, 'payer' | 'treasury'>,
): bigint =>
  transfersOf(receipt)
    .filter(isOfToken)
    .filter(({ from, to }) => from === payer && to === treasury && from !== to)
    .reduce((sum, { amount }) => sum + amount, 0n);

const isOfToken = ({ token }: TokenTransfer): boolean => token === PATH_USD;
