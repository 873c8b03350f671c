import { proxyActivities } from '@temporalio/workflow';

interface BareActivities {
  note(): Promise<void>;
}

/** Runs one activity that does nothing. */
export async function bareRun(): Promise<void> {
  await proxyActivities<BareActivities>({ startToCloseTimeout: '1 minute' }).note();
}
