import type { Database, TenantTransaction } from '../../platform/database/database.js';
import {
  creditsOf,
  grantedOf,
  hold,
  HoldNotOpenError,
  post,
  releaseAll,
  transfer,
} from '../../money/ledger/ledger.js';
import { NO_AGENT, requestNotification } from '../../notifications/outbox.js';
import { CENT, formatAmount } from '../../types/money.js';
import type { AccountSettings } from './settings.js';

/** Credits for the new user and for the referrer, each: 100, which are cents. */
export const REFERRAL_AMOUNT = 100n * CENT;

/** Maximum number of new accounts within 30 days for which their referrer is credited. */
export const MAX_REFERRALS = 10;

/** A registration with a referral code. */
export interface Referral {
  /** The new account. */
  readonly userId: string;
  readonly referrerId: string;
}

/** The causes of the holds that keep a referral's credits until the new account's address is verified. */
const unverified = (userId: string) =>
  ({ referrer: `unverified:${userId}:referrer`, new: `unverified:${userId}:new` }) as const;

/**
 * Grants credits to both sides of a referral, or to none beyond a bound: of the referrer, or of the day. They
 * can be spent once the new account's address is verified (`releaseReferralCredits`).
 */
export async function creditReferral(
  db: TenantTransaction,
  { referrerId, userId }: Referral,
  { creditsGrantedADay }: Pick<AccountSettings, 'creditsGrantedADay'>,
): Promise<void> {
  // Counted and granted by one registration at a time, so that no bound is exceeded.
  await db.lock('granted-credits');
  const { day, grantedToday, referrals } = await countGranted(db, referrerId);
  if (referrals >= MAX_REFERRALS) return;
  if (grantedToday + 2n * REFERRAL_AMOUNT > creditsGrantedADay) {
    if (creditsGrantedADay > 0n) await notifyUsedUp(db, day, creditsGrantedADay);
    return;
  }
  const causes = unverified(userId);
  // The referrer is first, by which `countGranted` recognizes the referrer.
  await grant(db, referrerId, userId, causes.referrer);
  await grant(db, userId, referrerId, causes.new);
}

interface Granted {
  /** The UTC day. */
  readonly day: string;
  readonly grantedToday: bigint;
  /** Accounts of the last 30 days for which the referrer was credited. */
  readonly referrals: number;
}

/** Counts by the ledger, whose transfers outlive accounts. */
async function countGranted(db: TenantTransaction, referrerId: string): Promise<Granted> {
  const [row] = await db.query<Omit<Granted, 'grantedToday'> & { today: string }>(
    `SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day,
            (SELECT coalesce(sum(amount), 0)::text FROM ledger_transfers
              WHERE debit = 'referrals' AND created_at >= date_trunc('day', now(), 'UTC')) AS today,
            (SELECT count(*)::integer FROM ledger_transfers AS own
               JOIN ledger_transfers AS theirs
                 ON theirs.cause = 'referral:' || split_part(own.cause, ':', 3) || ':' || $referrerId
                AND theirs.id > own.id
              WHERE own.debit = 'referrals' AND own.credit IN ($granted, $credits)
                AND own.currency = 'usd' AND own.created_at > now() - interval '30 days') AS referrals`,
    { referrerId, granted: grantedOf(referrerId), credits: creditsOf(referrerId) },
  );
  if (!row) throw new RangeError('Counting granted credits did not return exactly one row');
  return { day: row.day, grantedToday: BigInt(row.today), referrals: row.referrals };
}

async function grant(
  db: TenantTransaction,
  userId: string,
  reference: string,
  heldAs: string,
): Promise<void> {
  const granted = { amount: REFERRAL_AMOUNT, currency: 'usd' } as const;
  // Each user is credited once for the other, also after retries.
  await transfer(db, {
    ...granted,
    debit: 'referrals',
    credit: grantedOf(userId),
    cause: `referral:${userId}:${reference}`,
  });
  await hold(db, {
    ...granted,
    debit: grantedOf(userId),
    credit: 'referrals',
    cause: heldAs,
    forMs: 'never',
  });
}

/** Notifies operators, once a day. */
const notifyUsedUp = (db: TenantTransaction, day: string, limit: bigint) =>
  requestNotification(db, {
    id: `granted-credits-${day}`,
    agent: NO_AGENT,
    event: 'granted_credits_used_up',
    day,
    limit: formatAmount(limit),
  });

/** Makes the credits of an account's referral spendable on both sides, now that its address is verified. */
export async function releaseReferralCredits(db: TenantTransaction, userId: string): Promise<void> {
  await ifHeld(() => releaseAll(db, Object.values(unverified(userId))));
}

/**
 * Revokes the credits of a deleted account's referral on both sides if the account's address was never
 * verified.
 */
export async function takeBackReferralCredits(database: Database, userId: string): Promise<void> {
  for (const cause of Object.values(unverified(userId))) {
    await ifHeld(() => post(database.asPlatform(), cause));
  }
}

/** Ends holds; no effect for an account that was not referred, and for holds that have ended. */
async function ifHeld(end: () => Promise<void>): Promise<void> {
  try {
    await end();
  } catch (error) {
    if (!(error instanceof HoldNotOpenError)) throw error;
  }
}
