import type { Statements } from '../../platform/database/database.js';
import { PaymentRequiredError } from '../../lib/errors.js';
import type { Currency } from '../../types/money.js';

/** The currency of an account. USDC counts as a separate currency on each chain; no transfer crosses chains. */
export type LedgerCurrency = Exclude<Currency, 'usdc'> | `usdc:${number}`;

/**
 * An account's name. Each currency has its own account, made on first use. Users' and sessions' balances
 * never fall below zero; other accounts go negative by the amounts that entered through them.
 */
export type Account =
  /** A user's account for bought credits, for granted credits or for spending. */
  | `user:${string}:${string}`
  /** The remainder of a payment session's deposit; named by the id of the session's row. */
  | `session:${string}`
  /** The source of referral credits, which are not transferred from any other account. */
  | 'referrals'
  /** A user's debt, as a negative balance: the part of a reversed payment that had already been spent. */
  | `debt:${string}`
  /** The source of bought credits, in `usd`: the negative balance is what buyers paid. */
  | 'processor'
  /** The platform's earnings, in its wallet. */
  | 'treasury'
  /** An agent's wallet, by address. Incoming amounts are not booked. */
  | `wallet:${string}`
  /** Total transaction fees paid by the platform's own wallet, as a negative balance. */
  | 'fees'
  /** All wallets outside the platform. */
  | 'external';

/** Returns the account of a user's unspent bought credits, in `usd`. */
export const creditsOf = (userId: string) => `user:${userId}:credits` as const;

/**
 * Returns the account of a user's unspent granted credits, in `usd`. They buy only actions that the platform
 * itself performs: the database lets them move to the user's spent credits, or back to `referrals`.
 */
export const grantedOf = (userId: string) => `user:${userId}:granted` as const;

/**
 * Returns the account of a user's spent credits. Each user has one, so that users do not wait for each
 * other's row lock.
 */
export const spentOf = (userId: string) => `user:${userId}:spent` as const;

/** Returns the account of a user's debt, in `usd`. */
export const debtOf = (userId: string) => `debt:${userId}` as const;

export interface TransferRequest {
  readonly debit: Account;
  readonly credit: Account;
  /** Base units, more than zero. */
  readonly amount: bigint;
  readonly currency: LedgerCurrency;
  /**
   * The reason for the transfer, such as `voucher:<id>`; users see the prefix. A cause is used at most
   * once and contains no secret.
   */
  readonly cause: string;
}

/** An amount to reserve until it is posted or released. */
export interface Hold extends TransferRequest {
  /** Milliseconds after which the hold expires, by the database's clock; `never` if only a caller ends it. */
  readonly forMs: number | 'never';
}

/** An amount of a user's credits to reserve for a run. */
export interface CreditsHold {
  readonly userId: string;
  /** Base units, more than zero. */
  readonly amount: bigint;
  /** The cause of bought credits' hold. A second hold, of granted ones, has the cause `grantedCause`. */
  readonly cause: string;
  /** True if granted credits may pay; they pay first. */
  readonly withGranted: boolean;
  /** Age in milliseconds that bought credits need to pay; undefined for any age. */
  readonly resaleDelayMs?: number | undefined;
  readonly forMs: number;
}

/** Returns the cause of the granted credits' part of a hold. */
export const grantedCause = (cause: string) => `${cause}:granted`;

export type HoldState = 'open' | 'posted' | 'released';

export interface Balance {
  /** Base units, including held amounts. */
  readonly balance: bigint;
  readonly held: bigint;
}

/** 402: an account's balance is too low. */
export class InsufficientFundsError extends PaymentRequiredError {
  override readonly name = 'InsufficientFundsError';

  constructor() {
    super('Insufficient funds', 'INSUFFICIENT_FUNDS');
  }
}

/** An error in the calling code: a cause was reused for a different transfer. */
export class CauseConflictError extends Error {
  override readonly name = 'CauseConflictError';

  constructor(readonly ledgerCause: string) {
    super(`${ledgerCause} was already used for a different transfer or hold`);
  }
}

/** An error: the hold is no longer open or never existed, so no amount was moved or is held. */
export class HoldNotOpenError extends Error {
  override readonly name = 'HoldNotOpenError';

  constructor(
    readonly ledgerCause: string,
    readonly state: Exclude<HoldState, 'open'> | 'unknown',
  ) {
    super(`The hold ${ledgerCause} is ${state}`);
  }
}

// Each function is one atomic statement; it joins the caller's transaction, if there is one. Users can
// only spend from their own accounts. A refusal by these functions does not abort the caller's
// transaction.

/**
 * Moves an amount. Idempotent for the same movement.
 *
 * @throws InsufficientFundsError, CauseConflictError.
 */
export async function transfer(db: Statements, movement: TransferRequest): Promise<void> {
  const outcome = await settle<'made' | 'known' | Refusal>(
    db,
    'ledger_transfer($cause, $debit, $credit, $currency, $amount::numeric)',
    valuesOf(movement),
  );
  throwRefused(outcome, movement.cause);
}

/**
 * Holds an amount. Idempotent for the same hold, also after it was posted or released.
 *
 * @returns `open` while the amount is held; a posted or released hold is not reopened.
 * @throws InsufficientFundsError, CauseConflictError.
 */
export async function hold(db: Statements, { forMs, ...movement }: Hold): Promise<HoldState> {
  const outcome = await settle<HoldState | Refusal>(
    db,
    `ledger_hold($cause, $debit, $credit, $currency, $amount::numeric,
       coalesce(now() + make_interval(secs => $seconds::double precision), 'infinity'))`,
    { ...valuesOf(movement), seconds: forMs === 'never' ? null : forMs / 1_000 },
  );
  return throwRefused(outcome, movement.cause);
}

/**
 * Holds an amount of a user's credits, on one account or on both. Idempotent, as `hold` is.
 *
 * @throws InsufficientFundsError: nothing is held; CauseConflictError.
 */
export async function holdCredits(
  db: Statements,
  { amount, cause, forMs, resaleDelayMs, userId, withGranted }: CreditsHold,
): Promise<HoldState> {
  const outcome = await settle<HoldState | Refusal>(
    db,
    `hold_credits($cause, $userId, $amount::numeric, $withGranted::boolean,
       now() + make_interval(secs => $seconds::double precision),
       make_interval(secs => $resaleDelay::double precision))`,
    {
      cause,
      userId,
      amount: amount.toString(),
      withGranted,
      seconds: forMs / 1_000,
      resaleDelay: resaleDelayMs === undefined ? null : resaleDelayMs / 1_000,
    },
  );
  return throwRefused(outcome, cause);
}

/**
 * Moves the held amount or a part of it, and frees the rest. Idempotent.
 *
 * @param amount base units, more than zero and at most the held amount; default: the held amount.
 * @throws HoldNotOpenError if the hold was released, for example after it expired; CauseConflictError.
 */
export async function post(db: Statements, cause: string, amount?: bigint): Promise<void> {
  const outcome = await settle<'posted' | 'released' | 'unknown' | 'other'>(
    db,
    'ledger_post($cause, $amount::numeric)',
    { cause, amount: amount?.toString() ?? null },
  );
  if (outcome === 'other') throw new CauseConflictError(cause);
  if (outcome !== 'posted') throw new HoldNotOpenError(cause, outcome);
}

/**
 * Frees a held amount. Idempotent.
 *
 * @throws HoldNotOpenError if the hold was posted.
 */
export async function release(db: Statements, cause: string): Promise<void> {
  const outcome = await settle<'released' | 'posted' | 'unknown'>(db, 'ledger_release($cause)', {
    cause,
  });
  if (outcome !== 'released') throw new HoldNotOpenError(cause, outcome);
}

/**
 * Moves the amounts of all holds that exist for these causes, or none. Idempotent.
 *
 * @throws HoldNotOpenError if one of them was released, or none exists.
 */
export async function postAll(db: Statements, causes: readonly string[]): Promise<void> {
  const outcome = await settle<'posted' | 'released' | 'unknown'>(db, 'ledger_post_all($causes)', {
    causes,
  });
  if (outcome !== 'posted') throw new HoldNotOpenError(causes.join(' and '), outcome);
}

/**
 * Frees the amounts of all holds that exist for these causes. Idempotent.
 *
 * @throws HoldNotOpenError if they were posted, or none exists.
 */
export async function releaseAll(db: Statements, causes: readonly string[]): Promise<void> {
  const outcome = await settle<'released' | 'posted' | 'unknown'>(
    db,
    'ledger_release_all($causes)',
    {
      causes,
    },
  );
  if (outcome !== 'released') throw new HoldNotOpenError(causes.join(' and '), outcome);
}

/**
 * Pays a user's debt from free bought credits, as far as they reach. Call once for each cause.
 *
 * @returns the paid amount.
 */
export async function payDebt(db: Statements, userId: string, cause: string): Promise<bigint> {
  return BigInt(await settle<string>(db, 'pay_debt($cause, $userId)::text', { cause, userId }));
}

/** Returns an account's balance; zero for an unused account. */
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

/** Returns the balance of a user's credits, bought and granted. */
export async function creditBalance(db: Statements, userId: string): Promise<Balance> {
  const accounts = [creditsOf(userId), grantedOf(userId)];
  const [row] = await db.query<{ balance: string; held: string }>(
    `SELECT coalesce(sum(balance), 0)::text AS balance, coalesce(sum(held), 0)::text AS held
       FROM ledger_accounts WHERE name = ANY ($accounts) AND currency = 'usd'`,
    { accounts },
  );
  return { balance: BigInt(row?.balance ?? 0), held: BigInt(row?.held ?? 0) };
}

/** Returns the sum of several accounts' free balances in a currency. */
export async function freeOf(
  db: Statements,
  accounts: readonly Account[],
  currency: LedgerCurrency,
): Promise<bigint> {
  const [row] = await db.query<{ free: string }>(
    `SELECT coalesce(sum(balance - held), 0)::text AS free FROM ledger_accounts
      WHERE name = ANY ($accounts) AND currency = $currency`,
    { accounts, currency },
  );
  return BigInt(row?.free ?? 0);
}

/** Returns the bought credits that may pay for resold runs: those with a payment older than the delay. */
export async function resaleCreditsOf(
  db: Statements,
  userId: string,
  delayMs: number,
): Promise<bigint> {
  const [row] = await db.query<{ free: string }>(
    `SELECT resale_credits($userId, make_interval(secs => $seconds::double precision))::text AS free`,
    { userId, seconds: delayMs / 1_000 },
  );
  return BigInt(row?.free ?? 0);
}

type Refusal = 'insufficient' | 'other';

function throwRefused<Outcome extends string>(outcome: Outcome | Refusal, cause: string): Outcome {
  if (outcome === 'insufficient') throw new InsufficientFundsError();
  if (outcome === 'other') throw new CauseConflictError(cause);
  return outcome;
}

const valuesOf = ({ cause, debit, credit, currency, amount }: TransferRequest) => ({
  cause,
  debit,
  credit,
  currency,
  amount: amount.toString(),
});

async function settle<Outcome extends string>(
  db: Statements,
  call: string,
  values: Readonly<Record<string, unknown>>,
): Promise<Outcome> {
  const [row] = await db.query<{ outcome: Outcome }>(`SELECT ${call} AS outcome`, values);
  if (!row) throw new RangeError('A ledger function did not return exactly one row');
  return row.outcome;
}
