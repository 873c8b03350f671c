import type { Statements } from '../../platform/database/database.js';
import { PaymentRequiredError } from '../../lib/errors.js';
import type { Currency } from '../../types/money.js';

/** The currency of an account. USDC is another one on each chain: no transfer crosses. */
export type LedgerCurrency = Exclude<Currency, 'usdc'> | `usdc:${number}`;

/**
 * An account's name, of which there is one for each currency: it is made when it is first used. Those
 * of users and sessions never go below zero; the others do, as what came in from them.
 */
export type Account =
  /** A user's own: what they may spend, what they have spent. */
  | `user:${string}:${string}`
  /** A payment session's, by its row: what is left of its deposit. */
  | `session:${string}`
  /** What is credited for having brought somebody, from nowhere else. */
  | 'referrals'
  /** What the platform has earned, in its wallet. */
  | 'treasury'
  /** A wallet that is kept for an agent, by its address: what comes into it is not booked. */
  | `wallet:${string}`
  /** What the platform's own wallet has paid for transactions, all in all: below zero by as much. */
  | 'fees'
  /** Everybody else's wallets. */
  | 'external';

/** What a user has of credits: it is in `usd`. */
export const creditsOf = (userId: string) => `user:${userId}:credits` as const;

/** What a user has spent of them: an account of their own, so that nobody waits for anybody else. */
export const spentOf = (userId: string) => `user:${userId}:spent` as const;

/** An amount that goes from one account to another. */
export interface Movement {
  readonly debit: Account;
  readonly credit: Account;
  /** Base units, more than zero. */
  readonly amount: bigint;
  readonly currency: LedgerCurrency;
  /**
   * What it is for, as `voucher:<id>`: what it begins with is the reason that people see. Nothing is
   * moved twice for one cause, and no secret is in it.
   */
  readonly cause: string;
}

/** Something that is to be held, until it is posted or released. */
export interface Hold extends Movement {
  /** Milliseconds after which it is released by itself, by the clock of the database. */
  readonly forMs: number;
}

/** What has become of a hold. */
export type HoldState = 'open' | 'posted' | 'released';

export interface Balance {
  /** Base units, with what is held. */
  readonly balance: bigint;
  readonly held: bigint;
}

/** 402: an account has not as much to give. */
export class InsufficientFundsError extends PaymentRequiredError {
  constructor() {
    super('Insufficient funds', 'INSUFFICIENT_FUNDS');
  }
}

/** A cause came again for something else: whoever made it has a mistake. */
export class CauseUsedError extends Error {
  constructor(readonly ledgerCause: string) {
    super(`${ledgerCause} has moved or held something else already`);
    this.name = 'CauseUsedError';
  }
}

/** A hold is not open any more, or never was: nothing was moved, and nothing is held. */
export class HoldOverError extends Error {
  constructor(
    readonly ledgerCause: string,
    readonly state: Exclude<HoldState, 'open'> | 'unknown',
  ) {
    super(`The hold ${ledgerCause} is ${state}`);
    this.name = 'HoldOverError';
  }
}

// One statement each, which holds or fails as a whole: within a transaction with all else that is
// done there, by itself at once. A user's comes from an account of that user, or is refused. None
// that is refused here ends the transaction it was asked for in.

/**
 * Moves an amount. The same again is the same transfer.
 *
 * @throws InsufficientFundsError, CauseUsedError.
 */
export async function transfer(db: Statements, movement: Movement): Promise<void> {
  const outcome = await ask<'made' | 'known' | Refusal>(
    db,
    'ledger_transfer($cause, $debit, $credit, $currency, $amount::numeric)',
    valuesOf(movement),
  );
  throwRefused(outcome, movement.cause);
}

/**
 * Holds an amount back. The same again is the same hold, whatever its end.
 *
 * @returns `open` while it is held; what was posted or released before is not held again.
 * @throws InsufficientFundsError, CauseUsedError.
 */
export async function hold(db: Statements, { forMs, ...movement }: Hold): Promise<HoldState> {
  const outcome = await ask<HoldState | Refusal>(
    db,
    `ledger_hold($cause, $debit, $credit, $currency, $amount::numeric,
       now() + make_interval(secs => $seconds::double precision))`,
    { ...valuesOf(movement), seconds: forMs / 1_000 },
  );
  return throwRefused(outcome, movement.cause);
}

/**
 * Moves what is held, or as much of it; the rest is free again. The same again does nothing.
 *
 * @param amount base units, more than zero and at most what is held; all of it when omitted.
 * @throws HoldOverError when it was released, such as by its end; CauseUsedError.
 */
export async function post(db: Statements, cause: string, amount?: bigint): Promise<void> {
  const outcome = await ask<'posted' | 'released' | 'unknown' | 'other'>(
    db,
    'ledger_post($cause, $amount::numeric)',
    { cause, amount: amount?.toString() ?? null },
  );
  if (outcome === 'other') throw new CauseUsedError(cause);
  if (outcome !== 'posted') throw new HoldOverError(cause, outcome);
}

/**
 * Frees what is held. Again it does nothing.
 *
 * @throws HoldOverError when it was posted.
 */
export async function release(db: Statements, cause: string): Promise<void> {
  const outcome = await ask<'released' | 'posted' | 'unknown'>(db, 'ledger_release($cause)', {
    cause,
  });
  if (outcome !== 'released') throw new HoldOverError(cause, outcome);
}

/** What is in an account: nothing in one that was never used. */
export async function balanceOf(
  db: Statements,
  account: Account,
  currency: LedgerCurrency,
): Promise<Balance> {
  const [row] = await db.query<{ balance: string; held: string }>(
    `SELECT balance::text, held::text FROM ledger_accounts
      WHERE name = $account AND currency = $currency`,
    { account, currency },
  );
  return { balance: BigInt(row?.balance ?? 0), held: BigInt(row?.held ?? 0) };
}

type Refusal = 'insufficient' | 'other';

function throwRefused<Outcome extends string>(outcome: Outcome | Refusal, cause: string): Outcome {
  if (outcome === 'insufficient') throw new InsufficientFundsError();
  if (outcome === 'other') throw new CauseUsedError(cause);
  return outcome;
}

const valuesOf = ({ cause, debit, credit, currency, amount }: Movement) => ({
  ...{ cause, debit, credit, currency },
  amount: amount.toString(),
});

async function ask<Outcome extends string>(
  db: Statements,
  call: string,
  values: Readonly<Record<string, unknown>>,
): Promise<Outcome> {
  const [row] = await db.query<{ outcome: Outcome }>(`SELECT ${call} AS outcome`, values);
  if (!row) throw new RangeError('A function of the ledger answers one row');
  return row.outcome;
}
