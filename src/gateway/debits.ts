import type { ErrorCode } from '../lib/error-codes.js';
import type { Statements } from '../platform/database/database.js';

export interface Debit {
  /** A unique id that makes the debit's operations idempotent. */
  readonly id: string;
  readonly plugin: string;
  readonly action: string;
  /** Base units of one US dollar. */
  readonly amount: bigint;
}

/** A receipt for all deliveries of a payment session, up to and including one debit. */
export interface Voucher {
  readonly id: string;
  readonly sequence: number;
  /** Base units; `cumulative` is the running sum. */
  readonly amount: bigint;
  readonly cumulative: bigint;
  readonly createdAt: Date;
}

export interface Paid {
  /** Set for payment sessions only. */
  readonly voucher?: Voucher;
  readonly remaining: bigint;
}

/** No amount is held, and the action must not run. */
export interface DebitRefusal {
  readonly code: Extract<
    ErrorCode,
    'SESSION_INVALID' | 'SESSION_CLOSED' | 'SESSION_EXHAUSTED' | 'CREDITS_EXHAUSTED'
  >;
  /** Base units; undefined if no session or account exists. */
  readonly remaining: bigint | undefined;
}

/** An error in this work rolls the payment back. */
export type InPaymentTransaction = (db: Statements, paid: Paid) => Promise<void>;

export interface PaymentSource {
  readonly method: 'session' | 'credits';
  /** Names the payer to the services that its runs use. */
  readonly buyer: string;
  /** Returns the base units that are neither spent nor held, and may pay for the action. */
  remaining(): Promise<bigint>;
  /** Reserves the amount until the debit is posted or released, at most for `HOLD_MS`. */
  hold(debit: Debit): Promise<DebitRefusal | undefined>;
  /** Pays the held amount. Idempotent. @throws HoldNotOpenError if the hold was released, or has expired. */
  post(debit: Debit, also?: InPaymentTransaction): Promise<Paid>;
  /** Releases the held amount. Idempotent. @throws HoldNotOpenError if the debit was posted. */
  release(debit: Debit): Promise<void>;
}

export const RUN_MS = 60_000;

/**
 * Milliseconds that a hold lasts: one run and the time to post its debit. A pass every 30 s releases a
 * crashed process's hold, by the database's clock.
 */
export const HOLD_MS = RUN_MS + 20_000;
