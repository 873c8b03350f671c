import { isCancellation, proxyActivities } from '@temporalio/workflow';
import type { BusActivities, BusRecordActivities } from '../activities/bus.js';
import type { BusOutcome } from '../src/bus/bus-delivery.js';
import { BUS_TASK_QUEUE } from './ids.js';
import { proxyRecords } from './records.js';
import * as retries from './retries.js';

/**
 * Delivers a message of the bus to its service and to the recipient's webhook, by the id of its row. After a
 * day of failed attempts the message is dead.
 */
export async function deliverBusMessage(id: string): Promise<BusOutcome> {
  const records = proxyRecords<BusRecordActivities>();
  const { postBusMessage } = proxyActivities<BusActivities>({
    ...retries.busDelivery,
    taskQueue: BUS_TASK_QUEUE,
  });
  await records.routeBusMessage(id);
  try {
    return await postBusMessage(id);
  } catch (error) {
    if (isCancellation(error)) throw error;
    return records.giveUpBusMessage(id);
  }
}
