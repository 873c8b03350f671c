import { patched, proxyActivities, sleep } from '@temporalio/workflow';
import type { ReminderActivities } from './activities.js';

const { isDone, send } = proxyActivities<ReminderActivities>({
  startToCloseTimeout: '10 seconds',
});

/**
 * Sends a reminder unless it is done: the version after the change. Runs that passed the patch before the
 * change continue without it.
 */
export async function remind(person: string): Promise<void> {
  await sleep('1 hour');
  if (patched('ask-first') && (await isDone(person))) return;
  await send(person);
}
