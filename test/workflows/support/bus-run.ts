import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { BusActivities, BusRecordActivities } from '../../../activities/bus.js';
import type { BusOutcome } from '../../../src/bus/bus-delivery.js';
import type { deliverBusMessage } from '../../../workflows/deliver-bus-message.js';
import { BUS_TASK_QUEUE, deliverBusMessageId } from '../../../workflows/ids.js';
import { runAlone } from './run-alone.js';

/** Delivers one message of the bus with workers of its own. */
export async function busRun(
  environment: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundleWithSourceMap,
  records: BusRecordActivities,
  posts: BusActivities,
  id: string = randomUUID(),
): Promise<{ readonly workflowId: string; readonly result: BusOutcome }> {
  const workflowId = deliverBusMessageId(id);
  const elsewhere = { taskQueue: BUS_TASK_QUEUE, activities: posts };
  const alone = { workflowId, activities: records, elsewhere };
  const result = await runAlone(environment, workflowBundle, alone, (workflows, started) =>
    workflows.execute<typeof deliverBusMessage>('deliverBusMessage', { ...started, args: [id] }),
  );
  return { workflowId, result };
}
