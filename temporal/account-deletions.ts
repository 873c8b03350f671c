import { type Client } from '@temporalio/client';
import { deleteAccountId, PLATFORM_TASK_QUEUE } from '../workflows/ids.js';
import type { deleteAccount } from '../workflows/delete-account.js';
import { AGENT_OWNER } from '../workflows/search-attributes.js';
import { temporalCall } from './temporal-call.js';

const CALL_TIMEOUT_MS = 10_000;

/** What has accounts deleted. */
export interface AccountDeletionRuns {
  /** Again it changes nothing while it is under way. @throws UnavailableError */
  start(userId: string): Promise<void>;
}

/** One run for each account that is being deleted. */
export const accountDeletionRuns = (client: Client): AccountDeletionRuns => ({
  async start(userId) {
    await temporalCall(client, CALL_TIMEOUT_MS, () =>
      client.workflow.start<typeof deleteAccount>('deleteAccount', {
        workflowId: deleteAccountId(userId),
        workflowIdConflictPolicy: 'USE_EXISTING',
        taskQueue: PLATFORM_TASK_QUEUE,
        args: [userId],
        staticSummary: 'Deletion of an account',
        priority: { fairnessKey: userId },
        typedSearchAttributes: [{ key: AGENT_OWNER, value: userId }],
      }),
    );
  },
});
