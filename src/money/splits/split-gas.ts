import { isTempo } from '../payments/chains.js';

/**
 * Returns the gas limit of a transaction with this many payouts. A new recipient costs most, 265,000; a
 * hundred of them must fit into one transaction.
 */
export const gasFor = (payouts: number): bigint => 400_000n + 280_000n * BigInt(payouts);

/** Returns the cause of the payment of several payouts, of which `position` is the first. */
export const splitCause = (
  { attempt, id }: { readonly id: string; readonly attempt: number },
  position: number,
): string => `split:${id}:${attempt}:${position}`;

/** Returns whether the operator pays the fees of splits on a chain. All payouts then have one transaction. */
export const isPaidByOperator = (chainId: string | number): boolean => isTempo(Number(chainId));
