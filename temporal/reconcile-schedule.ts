import {
  ScheduleOverlapPolicy,
  type Client,
  type ScheduleOptionsStartWorkflowAction,
} from '@temporalio/client';
import { temporalCall } from './temporal-call.js';
import { putSchedule } from './put-schedule.js';
import { PLATFORM_TASK_QUEUE, reconcileHostId } from '../workflows/ids.js';
import type { reconcileHost } from '../workflows/reconcile-host.js';

const EVERY_MS = 5 * 60_000;

/** A pass that was missed for longer is made up for by the next. */
const CATCHUP_WINDOW = '1 minute';

const CALL_TIMEOUT_MS = 10_000;

type PassAction = ScheduleOptionsStartWorkflowAction<typeof reconcileHost>;

/**
 * Has the host reconciled now, and from now on every 5 minutes. Again it changes nothing else.
 *
 * @throws UnavailableError
 */
export async function scheduleReconciliation(client: Client, host: string): Promise<void> {
  await temporalCall(client, CALL_TIMEOUT_MS, () => setSchedule(client, host));
}

async function setSchedule(client: Client, host: string): Promise<void> {
  const scheduleId = reconcileHostId(host);
  const action: PassAction = {
    type: 'startWorkflow',
    workflowType: 'reconcileHost',
    workflowId: scheduleId,
    taskQueue: PLATFORM_TASK_QUEUE,
    args: [host],
    // A host whose worker is gone has its passes ended before the next one.
    workflowExecutionTimeout: '4 minutes',
  };
  await putSchedule(client, scheduleId, {
    spec: { intervals: [{ every: EVERY_MS }] },
    action,
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: CATCHUP_WINDOW },
  });
  await client.schedule.getHandle(scheduleId).trigger(ScheduleOverlapPolicy.SKIP);
}
