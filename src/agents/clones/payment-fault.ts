import type { Hex } from 'viem';
import type { Receipt } from '../../money/chain/answers.js';
import { PATH_USD } from '../../money/chain/tempo.js';
import { transfersOf, type TokenTransfer } from '../../money/chain/transfers.js';

/** What is to have been paid, with addresses in lower case. */
export interface DuePayment {
  readonly payer: string;
  readonly treasury: Hex;
  /** Base units. */
  readonly amount: bigint;
}

/** What keeps a transaction from being a payment. */
export type PaymentFault =
  | 'reverted'
  | 'wrong_token'
  | 'wrong_recipient'
  | 'wrong_sender'
  | 'underpaid';

/**
 * What keeps a transaction from being the payment: undefined when its transfers of pathUSD from the
 * payer to the treasury add up to it. What it says of itself does not count: one of several calls names
 * no recipient, and its fee is a transfer, too.
 */
export function faultOf(receipt: Receipt, due: DuePayment): PaymentFault | undefined {
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

/** Base units of pathUSD that the payer has sent the treasury; what it sends itself is none. */
export const paidBy = (
  receipt: Receipt,
  { payer, treasury }: Pick<DuePayment, 'payer' | 'treasury'>,
): bigint =>
  transfersOf(receipt)
    .filter(isOfToken)
    .filter(({ from, to }) => from === payer && to === treasury && from !== to)
    .reduce((sum, { amount }) => sum + amount, 0n);

const isOfToken = ({ token }: TokenTransfer): boolean => token === PATH_USD;
