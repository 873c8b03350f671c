import {
  ScheduleOverlapPolicy,
  type Client,
  type ScheduleOptionsStartWorkflowAction,
} from '@temporalio/client';
import { temporalCall } from './temporal-call.js';
import { putSchedule } from './put-schedule.js';
import { KEEP_USAGE_ID, PLATFORM_TASK_QUEUE } from '../workflows/ids.js';
import type { keepUsage } from '../workflows/keep-usage.js';

const EVERY_MS = 60_000;

/** A pass that was missed for longer is made up for by the next. */
const CATCHUP_WINDOW = '1 minute';

const CALL_TIMEOUT_MS = 10_000;

type PassAction = ScheduleOptionsStartWorkflowAction<typeof keepUsage>;

/**
 * Has usage and quotas kept every minute, one pass at a time, by whichever worker is there. Again it
 * changes nothing.
 *
 * @throws UnavailableError
 */
export async function scheduleUsage(client: Client): Promise<void> {
  const action: PassAction = {
    type: 'startWorkflow',
    workflowType: 'keepUsage',
    workflowId: KEEP_USAGE_ID,
    taskQueue: PLATFORM_TASK_QUEUE,
    // One that cannot come to its end is not in the way of the next.
    workflowExecutionTimeout: '2 minutes',
  };
  await temporalCall(client, CALL_TIMEOUT_MS, () =>
    putSchedule(client, KEEP_USAGE_ID, {
      spec: { intervals: [{ every: EVERY_MS }] },
      action,
      policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: CATCHUP_WINDOW },
    }),
  );
}
