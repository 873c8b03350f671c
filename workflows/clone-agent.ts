import { proxyActivities } from '@temporalio/workflow';
import type { CloneActivities } from '../activities/clones.js';
import * as retries from './retries.js';

/**
 * Creates a clone once its payment is final; its supervisor then provisions it like any other agent,
 * including a copy of the parent's memory. Returns false if the clone was not created; its row has the reason.
 */
export async function cloneAgent(cloneId: string): Promise<boolean> {
  const payment = proxyActivities<CloneActivities>(retries.untilOver);
  const handing = proxyActivities<CloneActivities>(retries.handingOver);
  if (!(await payment.awaitClonePayment(cloneId))) return false;
  await handing.handOverClone(cloneId);
  return true;
}
