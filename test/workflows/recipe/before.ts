import { proxyActivities, sleep } from '@temporalio/workflow';
import type { ReminderActivities } from './activities.js';

const { send } = proxyActivities<ReminderActivities>({ startToCloseTimeout: '10 seconds' });

/** Sends a reminder: the version before the change. */
export async function remind(person: string): Promise<void> {
  await sleep('1 hour');
  await send(person);
}
