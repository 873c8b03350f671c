import { proxyActivities } from '@temporalio/workflow';
import type { BillingActivities } from '../activities/billing.js';
import type { ProcessorEventOutcome } from '../src/types/processor-events.js';
import { proxyRecords } from './records.js';
import * as retries from './retries.js';

/** Books an event of the payment processor, by the id of its row, as soon as database and processor answer. */
export async function applyProcessorEvent(id: string): Promise<ProcessorEventOutcome | undefined> {
  const applied = await proxyRecords<BillingActivities>().applyProcessorEvent(id);
  if (applied !== 'reading') return applied;
  return proxyActivities<BillingActivities>(retries.processorCall).readProcessorEvent(id);
}
