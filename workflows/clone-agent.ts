import { proxyActivities } from '@temporalio/workflow';
import type { CloneActivities } from '../activities/clones.js';
import * as retries from './retries.js';

/**
 * Makes a clone of an agent, once its payment is final: from then on it is an agent like any other,
 * whose supervisor provisions it, the copy of its parent's memory included.
 *
 * @param cloneId that of the clone's agent, and of its row.
 * @returns false when it is not made: its row says why.
 */
export async function cloneAgent(cloneId: string): Promise<boolean> {
  const payment = proxyActivities<CloneActivities>(retries.untilOver);
  const handing = proxyActivities<CloneActivities>(retries.handingOver);
  if (!(await payment.awaitClonePayment(cloneId))) return false;
  await handing.handOverClone(cloneId);
  return true;
}
