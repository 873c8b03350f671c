import { proxyActivities } from '@temporalio/workflow';
import type { CloneActivities } from '../activities/clones.js';
import * as retries from './retries.js';

/**
 * Creates the clone of an agent once its payment is final. Its supervisor then provisions it like any
 * other agent, including a copy of the parent's memory.
 *
 * @param cloneId id of the clone, and of its row.
 * @returns false if the clone was not created; its row says why.
 */
export async function cloneAgent(cloneId: string): Promise<boolean> {
  const payment = proxyActivities<CloneActivities>(retries.untilOver);
  const handing = proxyActivities<CloneActivities>(retries.handingOver);
  if (!(await payment.awaitClonePayment(cloneId))) return false;
  await handing.handOverClone(cloneId);
  return true;
}
