import type { ProcessorEventEffects } from '../src/billing/apply-events.js';
import type { ProcessorReadings } from '../src/billing/processor-readings.js';
import type { BillingReconciliation } from '../src/billing/billing-reconciliation.js';
import { heartbeating } from './docker-activity.js';
import { asApplicationFailure } from './failures.js';

/** Creates the activities that book the payment processor's events. */
export function createBillingActivities(
  effects: Pick<ProcessorEventEffects, 'apply'>,
  readings: Pick<ProcessorReadings, 'read'>,
  reconciliation: Pick<BillingReconciliation, 'pass'>,
) {
  return {
    /** Run as a local activity: short and idempotent. */
    applyProcessorEvent: (id: string) => effects.apply(id),
    /** Reads an event's details from the payment processor, and applies the event. */
    readProcessorEvent: (id: string) =>
      asApplicationFailure(() => heartbeating(() => readings.read(id))),
    reconcileBilling: () => asApplicationFailure(() => heartbeating(() => reconciliation.pass())),
  };
}

export type BillingActivities = ReturnType<typeof createBillingActivities>;
