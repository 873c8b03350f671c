import { proxyActivities } from '@temporalio/workflow';
import type { AccountDeletionActivities } from '../activities/account-deletion.js';
import * as retries from './retries.js';

/**
 * Deletes an account that its owner has closed: each area in turn leaves it, however long that takes,
 * and then it is erased. Which areas there are is asked of the worker, so that a new one needs no
 * change here.
 */
export async function deleteAccount(userId: string): Promise<void> {
  const steps = proxyActivities<AccountDeletionActivities>(retries.accountDeletion);
  for (const area of await steps.accountAreas()) {
    await steps.leaveArea.executeWithOptions({ summary: area }, [area, userId]);
  }
  await steps.eraseAccount(userId);
}
