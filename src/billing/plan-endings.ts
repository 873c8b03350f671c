import type { Database } from '../platform/database/database.js';
import type { ProcessorSubscriptions } from './processor-subscriptions.js';

/** Maximum number of rows of a table that one call ends; the next call continues. */
const MAX_ENDED = 1_000;

/** A checkout without a session is being created, or was never shown to its user. */
const CHECKOUTS = `
  SELECT id, session_id AS "sessionId", created_at > now() - interval '2 minutes' AS "isNew"
    FROM subscription_checkouts
   WHERE user_id = $userId AND (ended_at IS NULL OR ended_at > now() - interval '1 hour')
   ORDER BY created_at LIMIT ${MAX_ENDED}`;

interface PlanEndingsParts {
  readonly database: Database;
  readonly processor: Pick<ProcessorSubscriptions, 'cancel' | 'endCheckout'>;
}

/** The end of all subscriptions of a user at the payment processor. */
export class PlanEndings {
  readonly #parts: PlanEndingsParts;

  constructor(parts: PlanEndingsParts) {
    this.#parts = parts;
  }

  /**
   * Cancels a user's subscriptions immediately, and expires the checkouts that are open. Idempotent.
   * @returns the number of checkouts that are still being made. @throws ProcessorError
   */
  async endAll(userId: string): Promise<number> {
    const { database, processor } = this.#parts;
    const tenant = database.asUser(userId);
    let making = 0;
    const checkouts = await tenant.query<Checkout>(CHECKOUTS, { userId });
    for (const { id, isNew, sessionId } of checkouts) {
      if (sessionId === null) making += isNew ? 1 : 0;
      else {
        const state = await processor.endCheckout(sessionId);
        if (state?.subscriptionId !== undefined) await processor.cancel(state.subscriptionId);
      }
      if (sessionId !== null || !isNew) {
        await tenant.query(
          'UPDATE subscription_checkouts SET ended_at = coalesce(ended_at, now()) WHERE id = $id',
          { id },
        );
      }
    }
    const subscriptions = await tenant.query<{ id: string }>(
      `SELECT processor_id AS id FROM subscriptions
        WHERE user_id = $userId AND source = 'processor' AND ended_at IS NULL
        LIMIT ${MAX_ENDED}`,
      { userId },
    );
    for (const { id } of subscriptions) {
      await processor.cancel(id);
      await tenant.query(
        `UPDATE subscriptions SET status = 'cancelled', ended_at = now(), updated_at = now()
          WHERE processor_id = $id`,
        { id },
      );
    }
    return making;
  }
}

interface Checkout {
  readonly id: string;
  readonly sessionId: string | null;
  readonly isNew: boolean;
}
