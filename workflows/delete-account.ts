import { proxyActivities } from '@temporalio/workflow';
import type { AccountDeletionActivities } from '../activities/account-deletion.js';
import * as retries from './retries.js';

/** Deletes a closed account area by area. The worker lists the areas, so a new area needs no change here. */
export async function deleteAccount(userId: string): Promise<void> {
  const steps = proxyActivities<AccountDeletionActivities>(retries.accountDeletion);
  for (const area of await steps.accountAreas()) {
    await steps.leaveArea.executeWithOptions({ summary: area }, [area, userId]);
  }
  await steps.eraseAccount(userId);
}
