import type { Database } from '../platform/database/database.js';
import type { ProcessorEventRow } from '../platform/database/models.js';
import { selectFrom } from '../platform/database/schema/table.js';
import { processorEvents } from '../platform/database/tables/billing.js';
import type { ProcessorEventOutcome } from '../types/processor-events.js';
import type { ProcessorSubscriptions } from './processor-subscriptions.js';
import type { SubscriptionStates } from './subscription-states.js';

interface ProcessorReadingsParts {
  readonly database: Database;
  readonly processor: Pick<ProcessorSubscriptions, 'cancel' | 'findByPayment'>;
  readonly states: Pick<SubscriptionStates, 'synchronize'>;
}

/** Applies the events whose details must be read from the payment processor. */
export class ProcessorReadings {
  readonly #parts: ProcessorReadingsParts;

  constructor(parts: ProcessorReadingsParts) {
    this.#parts = parts;
  }

  /** Applies an event, idempotently. @returns undefined for an unknown event. @throws ProcessorError */
  async read(id: string): Promise<ProcessorEventOutcome | undefined> {
    const platform = this.#parts.database.asPlatform();
    const [event] = await platform.query<ProcessorEventRow>(
      `${selectFrom(processorEvents)} WHERE id = $id`,
      { id },
    );
    if (!event || event.outcome !== null) return event?.outcome ?? undefined;
    const outcome = await this.#outcomeOf(event);
    // The payment that a refund has overtaken may have been booked since, with the refund.
    await platform.query(
      `UPDATE processor_events SET applied_at = now(), outcome = $outcome
        WHERE id = $id AND outcome IS NULL`,
      { id, outcome },
    );
    return outcome;
  }

  async #outcomeOf({ fact, paymentIntent }: ProcessorEventRow): Promise<ProcessorEventOutcome> {
    const { processor, states } = this.#parts;
    if (fact.kind === 'subscription') return states.synchronize(fact.subscriptionId);
    const found = paymentIntent === null ? undefined : await processor.findByPayment(paymentIntent);
    if (!found) return 'unmatched';
    const { isRefunded, subscriptionId } = found;
    const outcome = await states.synchronize(subscriptionId);
    const isTakenBack = isRefunded || fact.kind === 'dispute';
    if (outcome === 'unmatched' || !isTakenBack) return outcome;
    await processor.cancel(subscriptionId);
    return states.synchronize(subscriptionId);
  }
}
