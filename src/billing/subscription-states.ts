import { requestNotice } from '../accounts/accounts/account-notices.js';
import { isBeingDeleted } from '../accounts/accounts/account-deletions.js';
import { NO_AGENT, requestNotification } from '../notifications/outbox.js';
import type { Database, TenantTransaction } from '../platform/database/database.js';
import type { SubscriptionCheckoutRow } from '../platform/database/models.js';
import { selectFrom } from '../platform/database/schema/table.js';
import { subscriptionCheckouts } from '../platform/database/tables/billing.js';
import type { SubscriptionKind } from '../types/plans.js';
import { isHigher, planOfPrice, type SoldPlan } from './plan-prices.js';
import type { ProcessorSubscription, ProcessorSubscriptions } from './processor-subscriptions.js';
import type { BillingSettings } from './settings.js';

const DAY_MS = 24 * 60 * 60_000;

interface SubscriptionStatesParts {
  readonly database: Database;
  readonly processor: Pick<ProcessorSubscriptions, 'read' | 'refundAndCancel'>;
  readonly settings: Pick<BillingSettings, 'graceDays' | 'planPrices'>;
}

/** The present row of a subscription. */
interface KnownSubscription {
  readonly userId: string;
  readonly kind: SubscriptionKind;
  readonly plan: SoldPlan;
  readonly isNewer: boolean;
}

/** The state to write. */
interface State {
  readonly status: 'active' | 'past_due' | 'cancelled';
  readonly plan: SoldPlan;
  readonly periodEnd: Date;
  /** Null if the plan holds until the end of its period. */
  readonly holdsUntil: Date | null;
  /** Null while the processor may still request a payment. */
  readonly endedAt: Date | null;
}

interface Written {
  readonly outcome: 'read' | 'unmatched';
  /** Ids of subscriptions beside the one that the user keeps. */
  readonly seconds: readonly string[];
}

/** The states of the payment processor's subscriptions, in rows. */
export class SubscriptionStates {
  readonly #parts: SubscriptionStatesParts;

  constructor(parts: SubscriptionStatesParts) {
    this.#parts = parts;
  }

  /**
   * Reads a subscription and writes its state. A second subscription of the same kind is refunded and cancelled.
   * Idempotent, and independent of the order of calls. @throws ProcessorError
   */
  async synchronize(id: string): Promise<Written['outcome']> {
    const { outcome, seconds } = await this.#refresh(id);
    for (const second of seconds) {
      await this.#parts.processor.refundAndCancel(second);
      await this.#refresh(second);
    }
    return outcome;
  }

  async #refresh(id: string): Promise<Written> {
    const { database, processor } = this.#parts;
    const platform = database.asPlatform();
    const [clock] = await platform.query<{ now: string }>('SELECT clock_timestamp()::text AS now');
    const at = clock?.now ?? '-infinity';
    const read = await processor.read(id);
    if (read) return platform.transaction((db) => this.#write(db, read, at));
    await platform.transaction((db) => lapse(db, id, at));
    return { outcome: 'unmatched', seconds: [] };
  }

  /** Writes what was read at a time, unless a later state is written already. */
  async #write(db: TenantTransaction, read: ProcessorSubscription, at: string): Promise<Written> {
    const { checkoutId, id } = read;
    const checkout = await findCheckout(db, checkoutId);
    const owner = checkout ?? (await findKnown(db, id, at));
    if (!owner) {
      if (checkoutId !== undefined) await notifyUnmatched(db, id);
      return { outcome: 'unmatched', seconds: [] };
    }
    const { kind, userId } = owner;
    const isThere =
      (await db.query('SELECT FROM users WHERE id = $userId FOR SHARE', { userId })).length > 0;
    // The deletion of an account cancels its subscriptions.
    if (!isThere || (await isBeingDeleted(db, userId))) return { outcome: 'read', seconds: [] };
    await db.lock(`subscriptions of ${userId}`);
    const known = await findKnown(db, id, at);
    const state = stateOf(read, known ?? owner, known !== undefined, this.#parts.settings);
    if (!state || known?.isNewer) return { outcome: 'read', seconds: [] };
    await db.query(WRITE, { userId, kind, at, ...columnsOf(read, state) });
    await db.query(
      'UPDATE subscription_checkouts SET ended_at = coalesce(ended_at, now()) WHERE id = $id',
      { id: checkoutId ?? null },
    );
    const seconds = await findSeconds(db, userId, kind);
    for (const second of seconds) await notifySecond(db, second);
    if (kind === 'plan' && seconds.length === 0) await mailEnd(db, userId, id);
    return { outcome: 'read', seconds };
  }
}

/** Returns the state to store for a subscription; undefined if it needs no row. */
function stateOf(
  read: ProcessorSubscription,
  { kind, plan: before }: { readonly kind: SubscriptionKind; readonly plan: SoldPlan },
  isKnown: boolean,
  settings: Pick<BillingSettings, 'graceDays' | 'planPrices'>,
): State | undefined {
  const { endedAt, endsAt, isChangeUnpaid, periodEnd, periodStart, status, unpaidSince } = read;
  const priced = planOfPrice(read.price, kind, settings) ?? before;
  // A higher plan holds once its invoice is paid.
  const plan = isChangeUnpaid && isHigher(priced, before) ? before : priced;
  const graceMs = settings.graceDays * DAY_MS;
  const after = (time: Date) => new Date(time.getTime() + graceMs);
  const alive = { plan, periodEnd, endedAt: null };
  const ended = { plan, status: 'cancelled', holdsUntil: null } as const;
  switch (status) {
    case 'active':
    case 'trialing':
      // The plan outlives its period until the processor reports the next one, or the time for that is over.
      return { ...alive, status: 'active', holdsUntil: endsAt ?? after(periodEnd) };
    case 'past_due':
      return { ...alive, status: 'past_due', holdsUntil: after(unpaidSince ?? periodStart) };
    case 'incomplete':
      return isKnown ? { ...ended, periodEnd, endedAt: null } : undefined;
    case 'unpaid':
    case 'paused':
      return { ...ended, periodEnd, endedAt: null };
    case 'incomplete_expired':
    case 'canceled':
      if (!isKnown && status === 'incomplete_expired') return undefined;
      return { ...ended, periodEnd: endedAt ?? periodEnd, endedAt: endedAt ?? periodEnd };
    default:
      return undefined;
  }
}

const columnsOf = (read: ProcessorSubscription, { status, plan, ...times }: State) => ({
  id: read.id,
  customerId: read.customerId,
  createdAt: read.createdAt,
  periodStart: read.periodStart,
  status,
  plan,
  ...times,
});

const WRITE = `
  INSERT INTO subscriptions (user_id, kind, plan, status, source, processor_id, customer_id,
                             period_start, period_end, holds_until, ended_at, read_at, created_at, updated_at)
  VALUES ($userId, $kind, $plan, $status, 'processor', $id, $customerId,
          $periodStart, greatest($periodStart::timestamptz, $periodEnd::timestamptz), $holdsUntil, $endedAt, $at::timestamptz, $createdAt, now())
  ON CONFLICT (processor_id) DO UPDATE
    SET plan = excluded.plan, status = excluded.status, customer_id = excluded.customer_id,
        period_start = excluded.period_start, period_end = excluded.period_end,
        holds_until = excluded.holds_until, ended_at = excluded.ended_at, read_at = excluded.read_at,
        updated_at = CASE WHEN (subscriptions.status, subscriptions.plan)
                               = (excluded.status, excluded.plan)
                          THEN subscriptions.updated_at ELSE now() END`;

/**
 * Ends the plan of a subscription that is unknown to the processor, once its paid period is over. The
 * processor never deletes subscriptions, so the configured key probably belongs to another account: operators
 * are notified, a paid plan stays valid until its period ends, and a later event of the right account
 * restores the row.
 */
async function lapse(db: TenantTransaction, id: string, at: string): Promise<void> {
  const known = await db.query(
    'UPDATE subscriptions SET read_at = $at::timestamptz WHERE processor_id = $id RETURNING id',
    { id, at },
  );
  if (known.length === 0) return;
  await db.query(LAPSE, { id });
  await requestNotification(db, {
    id: `subscription-unknown-${id}`,
    agent: NO_AGENT,
    event: 'subscription_unknown',
    subscriptionId: id,
  });
}

const LAPSE = `
  UPDATE subscriptions SET status = 'cancelled', updated_at = now()
   WHERE processor_id = $id AND ended_at IS NULL AND status <> 'cancelled'
     AND coalesce(holds_until, period_end) < now()`;

async function findCheckout(
  db: TenantTransaction,
  id: string | undefined,
): Promise<SubscriptionCheckoutRow | undefined> {
  if (id === undefined) return undefined;
  const [checkout] = await db.query<SubscriptionCheckoutRow>(
    `${selectFrom(subscriptionCheckouts)} WHERE id = $id`,
    { id },
  );
  return checkout;
}

async function findKnown(
  db: TenantTransaction,
  id: string,
  at: string,
): Promise<KnownSubscription | undefined> {
  const [known] = await db.query<KnownSubscription>(
    `SELECT user_id AS "userId", kind, plan, coalesce(read_at > $at::timestamptz, false) AS "isNewer"
       FROM subscriptions WHERE processor_id = $id`,
    { id, at },
  );
  return known;
}

/** Returns the subscriptions of a kind that a user has beside a paid one, or else beside the oldest one. */
async function findSeconds(
  db: TenantTransaction,
  userId: string,
  kind: SubscriptionKind,
): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    `SELECT processor_id AS id FROM subscriptions
      WHERE user_id = $userId AND kind = $kind AND source = 'processor' AND status <> 'cancelled'
      ORDER BY status, created_at, processor_id OFFSET 1`,
    { userId, kind },
  );
  return rows.map(({ id }) => id);
}

/** Requests a mail to a user whose plan has ended with a subscription, once for each end. */
async function mailEnd(db: TenantTransaction, userId: string, id: string): Promise<void> {
  const ended = await db.query(
    `UPDATE subscriptions SET end_mailed_at = CASE WHEN p.holds THEN NULL ELSE now() END
       FROM current_subscription($userId, 'plan') p
      WHERE processor_id = $id AND (end_mailed_at IS NULL) <> p.holds
      RETURNING NOT p.holds AS ended`,
    { userId, id },
  );
  if (ended.some((row) => 'ended' in row && row.ended))
    await requestNotice(db, userId, 'plan-ended');
}

const notifyUnmatched = (db: TenantTransaction, subscriptionId: string) =>
  requestNotification(db, {
    id: `subscription-unmatched-${subscriptionId}`,
    agent: NO_AGENT,
    event: 'subscription_unmatched',
    subscriptionId,
  });

const notifySecond = (db: TenantTransaction, subscriptionId: string) =>
  requestNotification(db, {
    id: `second-plan-${subscriptionId}`,
    agent: NO_AGENT,
    event: 'second_plan',
    subscriptionId,
  });
