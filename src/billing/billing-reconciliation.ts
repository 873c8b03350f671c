import type { Logger } from 'pino';
import type { Database } from '../platform/database/database.js';
import type { CheckoutState, ProcessorSubscriptions } from './processor-subscriptions.js';
import type { ProcessorEvents } from './receive-events.js';
import type { SubscriptionStates } from './subscription-states.js';

/** Subscriptions, and checkouts of each table, that one pass reads; the next pass continues. */
const MAX_READ = 200;

/** Number of failures after which a pass ends: the processor does not answer. */
const MAX_FAILURES = 3;

/** Minutes after which a checkout has ended: it expires after an hour. */
const CHECKOUT_MINUTES = 65;

const ENDED_SUBSCRIPTIONS = `
  SELECT processor_id AS id FROM subscriptions
   WHERE source = 'processor' AND status <> 'cancelled'
     AND (period_end < now() OR holds_until < now())
   ORDER BY read_at NULLS FIRST LIMIT ${MAX_READ}`;

const unfinished = (table: string, more = '') => `
  SELECT id, session_id AS "sessionId" FROM ${table}
   WHERE ended_at IS NULL ${more} AND created_at < now() - interval '${CHECKOUT_MINUTES} minutes'
   ORDER BY created_at LIMIT ${MAX_READ}`;

const CHECKOUTS = {
  checkouts: unfinished('checkouts', 'AND paid_at IS NULL'),
  subscription_checkouts: unfinished('subscription_checkouts'),
};

interface BillingReconciliationParts {
  readonly database: Database;
  readonly processor: Pick<ProcessorSubscriptions, 'readCheckout'>;
  readonly states: Pick<SubscriptionStates, 'synchronize'>;
  readonly events: Pick<ProcessorEvents, 'store'>;
  readonly log: Logger;
}

/** Results of a pass. */
export interface BillingReconciled {
  /** Subscriptions that were read, because their period or their grace has ended. */
  readonly subscriptions: number;
  /** Checkouts that were not finished, or whose event was lost. */
  readonly checkouts: number;
  readonly failures: number;
}

/** Reads from the payment processor what its events should have reported. */
export class BillingReconciliation {
  readonly #parts: BillingReconciliationParts;

  constructor(parts: BillingReconciliationParts) {
    this.#parts = parts;
  }

  /** Makes one pass; idempotent. A subscription or checkout that fails does not keep others waiting. */
  async pass(): Promise<BillingReconciled> {
    const { database, states } = this.#parts;
    const platform = database.asPlatform();
    const counts = { subscriptions: 0, checkouts: 0, failures: 0 };
    const attempt = async (count: 'subscriptions' | 'checkouts', work: () => Promise<unknown>) => {
      if (counts.failures >= MAX_FAILURES) return;
      try {
        await work();
        counts[count] += 1;
      } catch (error) {
        counts.failures += 1;
        this.#parts.log.warn({ err: error }, 'the payment processor was not read, retrying later');
      }
    };
    for (const { id } of await platform.query<{ id: string }>(ENDED_SUBSCRIPTIONS)) {
      await attempt('subscriptions', () => states.synchronize(id));
    }
    for (const [table, sql] of Object.entries(CHECKOUTS)) {
      for (const checkout of await platform.query<UnfinishedCheckout>(sql)) {
        await attempt('checkouts', () => this.#endCheckout(table, checkout));
      }
    }
    return counts;
  }

  /** Marks a checkout as ended, after an event of its payment was stored in place of a lost one. */
  async #endCheckout(table: string, { id, sessionId }: UnfinishedCheckout): Promise<void> {
    const { database, events, processor } = this.#parts;
    // A checkout without a session was not made, or its answer was lost, and no page was shown.
    const state = sessionId === null ? undefined : await processor.readCheckout(sessionId);
    if (state?.status === 'open') return;
    if (state?.status === 'complete') await events.store(completion(sessionId, state));
    await database
      .asPlatform()
      .query(`UPDATE ${table} SET ended_at = coalesce(ended_at, now()) WHERE id = $id`, { id });
  }
}

interface UnfinishedCheckout {
  readonly id: string;
  readonly sessionId: string | null;
}

/** Returns the event that reports the completion of a checkout. */
const completion = (sessionId: string | null, { object }: CheckoutState) => ({
  id: `read_${sessionId}`,
  type: 'checkout.session.completed',
  created: Math.floor(Date.now() / 1_000),
  data: { object },
});
