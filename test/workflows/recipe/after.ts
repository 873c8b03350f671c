import { patched, proxyActivities, sleep } from '@temporalio/workflow';
import type { ReminderActivities } from './activities.js';

const { isDone, send } = proxyActivities<ReminderActivities>({
  startToCloseTimeout: '10 seconds',
});

/** The version that takes them over. Runs that have passed the place go on as they began. */
export async function remind(person: string): Promise<void> {
  await sleep('1 hour');
  if (patched('ask-first') && (await isDone(person))) return;
  await send(person);
}
