import type { Statements } from '../platform/database/database.js';

/** The payment for one run. */
export interface Debit {
  /** Of its own: what is asked for again under it is done once. */
  readonly id: string;
  readonly plugin: string;
  readonly action: string;
  /** Base units of a US dollar. */
  readonly amount: bigint;
}

/** What has been delivered for a payment session, up to and with one debit. */
export interface Voucher {
  readonly id: string;
  readonly sequence: number;
  /** Base units, as the cumulative sum. */
  readonly amount: bigint;
  readonly cumulative: bigint;
  readonly createdAt: Date;
}

export interface Paid {
  /** Of a payment session. */
  readonly voucher?: Voucher;
  /** What can be spent yet, in base units. */
  readonly remaining: bigint;
}

/** Nothing is held: what was asked for is not to be run. */
export interface DebitRefusal {
  readonly code: 'SESSION_INVALID' | 'SESSION_CLOSED' | 'SESSION_EXHAUSTED' | 'CREDITS_EXHAUSTED';
  /** What can be spent yet, in base units; undefined where there is nothing to spend from. */
  readonly remaining: bigint | undefined;
}

/** Does more in the transaction of a payment, which is given up when this throws. */
export type WithPayment = (db: Statements, paid: Paid) => Promise<void>;

/** What debits are taken from. */
export interface Purse {
  readonly method: 'session' | 'credits';
  /** Keeps the amount back until it is posted or released, or `HOLD_MS` are over. */
  hold(debit: Debit): Promise<DebitRefusal | undefined>;
  /**
   * Pays what is held. Again it does nothing, and answers the same.
   *
   * @throws HoldOverError when it was released, such as by its end.
   */
  post(debit: Debit, also?: WithPayment): Promise<Paid>;
  /** Frees what is held. Again it does nothing. @throws HoldOverError when it was posted. */
  release(debit: Debit): Promise<void>;
}

/** For a run, in milliseconds. */
export const RUN_MS = 60_000;

/**
 * For how long an amount is held: a run, and what it takes to post it. A hold of who died is released by
 * a pass every half minute, so within two minutes: all by the database's clock, whatever this process has.
 */
export const HOLD_MS = RUN_MS + 20_000;
