import type { ProcessorEventEffects } from '../src/billing/apply-events.js';

/** Creates the activities that book the payment processor's events. Run as local activities: short and idempotent. */
export function createBillingActivities(effects: Pick<ProcessorEventEffects, 'apply'>) {
  return {
    applyProcessorEvent: (id: string) => effects.apply(id),
  };
}

export type BillingActivities = ReturnType<typeof createBillingActivities>;
