import type { Hex } from 'viem';

/**
 * `queued`: nothing is signed for it. `broadcast`: its transaction is stored, and sent until it is mined
 * deep enough. `confirmed`: paid, for good. `failed`: not paid, for good.
 */
export type PaymentState = 'queued' | 'broadcast' | 'confirmed' | 'failed';

export const PAYMENT_STATES = ['queued', 'broadcast', 'confirmed', 'failed'] as const;

/** What a transaction is for: a `cancel` takes the nonce of a payment that no node will have. */
export type TransactionPurpose = 'pay' | 'cancel' | 'fill';

/**
 * Why nothing was paid, or is not known to be.
 *
 * - `reverted`: the contract refused it, on chain.
 * - `refused`: it would have, so nothing was signed.
 * - `unsignable`: nothing could be signed, such as without its key.
 * - `cancelled`: no node would have it, and its nonce was used for nothing.
 * - `unknown`: it may have been paid by a transaction that the database knows nothing of, as after it was restored.
 */
export const PAYMENT_FAILURES = [
  'reverted',
  'refused',
  'unsignable',
  'cancelled',
  'unknown',
] as const;

export type PaymentFailure = (typeof PAYMENT_FAILURES)[number];

/** One call of a contract. */
export interface PaymentCall {
  readonly to: Hex;
  readonly data: Hex;
  /** In the chain's own coin, which the platform's own chain has none of. */
  readonly value: bigint;
}

/** The same as it is stored. */
export interface StoredCall {
  readonly to: Hex;
  readonly data: Hex;
  readonly value: string;
}

/** How it stands with a payment. */
export interface PaymentStatus {
  readonly state: PaymentState;
  /** Of the transaction that was mined, else of the newest one; undefined while nothing is signed. */
  readonly hash: Hex | undefined;
  /** The block that it is in for good; undefined before. */
  readonly block: number | undefined;
  /** Undefined unless it has failed. */
  readonly failure: PaymentFailure | undefined;
}
