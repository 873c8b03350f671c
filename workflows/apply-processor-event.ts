import type { BillingActivities } from '../activities/billing.js';
import type { ProcessorEventOutcome } from '../src/types/processor-events.js';
import { proxyRecords } from './records.js';

/** Books an event of the payment processor, by the id of its row, as soon as the database is available. */
export async function applyProcessorEvent(id: string): Promise<ProcessorEventOutcome | undefined> {
  return proxyRecords<BillingActivities>().applyProcessorEvent(id);
}
