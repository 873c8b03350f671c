import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type {
  AttestationActivities,
  MeasurementActivities,
  VerificationRecordActivities,
} from '../../../activities/verification.js';
import { containersTaskQueue, PAYMENTS_TASK_QUEUE, verifyAgentId } from '../../../workflows/ids.js';
import type { verifyAgent } from '../../../workflows/verify-agent.js';
import { runAlone } from './run-alone.js';

/** Host of the agents in these runs. */
export const HOST = 'verified-host';

/** Activities of a run; without those of the host or of the payments process, their queue is not polled. */
export interface VerificationRunActivities {
  readonly records: VerificationRecordActivities;
  readonly host?: MeasurementActivities;
  readonly payments?: AttestationActivities;
}

/** Verifies one agent with workers of its own. */
export async function verificationRun(
  environment: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundleWithSourceMap,
  { host, payments, records }: VerificationRunActivities,
  agentId: string = randomUUID(),
): Promise<{ readonly workflowId: string; readonly result: number }> {
  const workflowId = verifyAgentId(agentId);
  const run = () =>
    runAlone(
      environment,
      workflowBundle,
      {
        workflowId,
        activities: records,
        ...(host && { elsewhere: { taskQueue: containersTaskQueue(HOST), activities: host } }),
      },
      (workflows, started) =>
        workflows.execute<typeof verifyAgent>('verifyAgent', { ...started, args: [agentId] }),
    );
  if (!payments) return { workflowId, result: await run() };
  const payer = await Worker.create({
    connection: environment.nativeConnection,
    namespace: environment.namespace,
    taskQueue: PAYMENTS_TASK_QUEUE,
    activities: payments,
  });
  return { workflowId, result: await payer.runUntil(run) };
}
