import { randomUUID } from 'node:crypto';
import type { TenantDatabase } from '../platform/database/database.js';
import type { SubscriptionKind } from '../types/plans.js';
import { kindOf, type SoldPlan } from './plan-prices.js';
import type { ProcessorSubscriptions } from './processor-subscriptions.js';
import type { SubscriptionStates } from './subscription-states.js';

/** Maximum number of checkouts that can be open at a time: 30 a minute expire after an hour. */
const MAX_OPEN = 1_800;

interface PlanCheckoutsParts {
  readonly processor: Pick<
    ProcessorSubscriptions,
    'createCheckout' | 'createPortal' | 'endCheckout'
  >;
  readonly states: Pick<SubscriptionStates, 'synchronize'>;
  /** Public address of the web API, where the buyer returns to. */
  readonly webUrl: string;
}

/** The page of the processor to go to; `sessionId` is null for the page that changes a subscription. */
export interface PlanPage {
  readonly url: string;
  readonly sessionId: string | null;
}

interface PresentSubscription {
  readonly processorId: string;
  readonly plan: string;
  readonly status: string;
}

/** Purchases and changes of plans at the payment processor, where the buyer confirms each. */
export class PlanCheckouts {
  readonly #parts: PlanCheckoutsParts;

  constructor(parts: PlanCheckoutsParts) {
    this.#parts = parts;
  }

  /**
   * Starts the purchase of a plan, and expires the open checkouts of its kind. A user with such a plan from the
   * processor is led to the page that changes it. @throws ProcessorError
   */
  async start(tenant: TenantDatabase, userId: string, plan: SoldPlan): Promise<PlanPage> {
    const kind = kindOf(plan);
    if (!(await findPresent(tenant, userId, kind))) await this.#endOpen(tenant, userId, kind);
    const present = await findPresent(tenant, userId, kind);
    return present ? this.#change(present, plan) : this.#buy(tenant, userId, plan);
  }

  async #buy(tenant: TenantDatabase, userId: string, plan: SoldPlan): Promise<PlanPage> {
    const { processor, webUrl } = this.#parts;
    const id = randomUUID();
    await tenant.query(
      `INSERT INTO subscription_checkouts (id, user_id, kind, plan)
       VALUES ($id, $userId, $kind, $plan)`,
      { id, userId, kind: kindOf(plan), plan },
    );
    const made = await processor.createCheckout({
      checkoutId: id,
      plan,
      successUrl: `${webUrl}/dashboard?done=plan-bought`,
      cancelUrl: `${webUrl}/dashboard?done=plan-not-bought`,
    });
    const { sessionId } = made;
    await tenant.query('UPDATE subscription_checkouts SET session_id = $sessionId WHERE id = $id', {
      id,
      sessionId,
    });
    return made;
  }

  async #change({ plan: now, processorId, status }: PresentSubscription, plan: SoldPlan) {
    const url = await this.#parts.processor.createPortal({
      subscriptionId: processorId,
      // An unpaid subscription is paid for first.
      plan: now === plan || status !== 'active' ? undefined : plan,
      returnUrl: `${this.#parts.webUrl}/dashboard?done=plan-changed`,
    });
    return { url, sessionId: null };
  }

  /** Expires open checkouts, and reads the subscription of one that was paid just now. */
  async #endOpen(tenant: TenantDatabase, userId: string, kind: SubscriptionKind): Promise<void> {
    const { processor, states } = this.#parts;
    const open = await tenant.query<{ id: string; sessionId: string }>(
      `SELECT id, session_id AS "sessionId" FROM subscription_checkouts
        WHERE user_id = $userId AND kind = $kind AND ended_at IS NULL AND session_id IS NOT NULL
        ORDER BY created_at LIMIT ${MAX_OPEN}`,
      { userId, kind },
    );
    for (const { id, sessionId } of open) {
      const state = await processor.endCheckout(sessionId);
      if (state?.subscriptionId !== undefined) await states.synchronize(state.subscriptionId);
      await tenant.query('UPDATE subscription_checkouts SET ended_at = now() WHERE id = $id', {
        id,
      });
    }
  }
}

/** Returns the subscription of the processor that has not ended. */
async function findPresent(
  tenant: TenantDatabase,
  userId: string,
  kind: SubscriptionKind,
): Promise<PresentSubscription | undefined> {
  const [present] = await tenant.query<PresentSubscription>(
    `SELECT processor_id AS "processorId", plan, status FROM subscriptions
      WHERE user_id = $userId AND kind = $kind AND source = 'processor' AND status <> 'cancelled'
      ORDER BY status, created_at LIMIT 1`,
    { userId, kind },
  );
  return present;
}
