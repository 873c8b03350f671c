import type { Hex } from 'viem';

/**
 * `queued`: no transaction is signed. `broadcast`: its transaction is stored, and sent until it is final.
 * `confirmed`: paid, final. `failed`: not paid, final.
 */
export type PaymentState = 'queued' | 'broadcast' | 'confirmed' | 'failed';

export const PAYMENT_STATES = ['queued', 'broadcast', 'confirmed', 'failed'] as const;

/** Purpose of a transaction: `cancel` uses a rejected payment's nonce, `fill` closes a nonce gap. */
export type TransactionPurpose = 'pay' | 'cancel' | 'fill';

/**
 * Reasons why a payment was not made, or may not have been.
 *
 * - `reverted`: the contract reverted it on chain.
 * - `refused`: it would have been reverted, so no transaction was signed.
 * - `unsignable`: no transaction could be signed, for example without a key.
 * - `cancelled`: every node rejected it, and its nonce was used by an empty transaction.
 * - `unknown`: a transaction missing from the database, as after a restore, may have paid it.
 */
export const PAYMENT_FAILURES = [
  'reverted',
  'refused',
  'unsignable',
  'cancelled',
  'unknown',
] as const;

export type PaymentFailure = (typeof PAYMENT_FAILURES)[number];

export interface PaymentCall {
  readonly to: Hex;
  readonly data: Hex;
  /** Amount in the chain's native coin; the platform's own chain has none. */
  readonly value: bigint;
}

export interface StoredCall {
  readonly to: Hex;
  readonly data: Hex;
  readonly value: string;
}

export interface PaymentStatus {
  readonly state: PaymentState;
  /** Hash of the mined transaction, or else of the newest; undefined until one is signed. */
  readonly hash: Hex | undefined;
  /** Number of the block that contains it, once it is final. */
  readonly block: number | undefined;
  /** Undefined unless it has failed. */
  readonly failure: PaymentFailure | undefined;
}

/** The state of a payment that has ended. */
export type EndedPayment = PaymentStatus & { readonly state: 'confirmed' | 'failed' };

export const isEnded = (status: PaymentStatus | undefined): status is EndedPayment =>
  status?.state === 'confirmed' || status?.state === 'failed';
