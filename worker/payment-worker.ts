import { Worker, type NativeConnection } from '@temporalio/worker';
import {
  createPaymentActivities,
  type PaymentActivityDependencies,
} from '../activities/payments.js';
import { createAttestationActivities } from '../activities/verification.js';
import type { Attester } from '../src/agents/verification/attester.js';
import { PAYMENTS_TASK_QUEUE } from '../workflows/ids.js';

/** Maximum number of concurrent activities: of signers, and mostly of waits for payments. */
const MAX_ACTIVITIES = 5_000;

/** Time for activities in flight when the worker must end; they are retried on another worker. */
const SHUTDOWN_GRACE = '1 second';
const SHUTDOWN_FORCE = '20 seconds';

/** Cancellations are delivered with heartbeats; throttled ones would take as long as the timeout. */
const HEARTBEAT_THROTTLE = '5 seconds';

export interface PaymentWorkerDependencies {
  readonly connection: NativeConnection;
  readonly namespace: string;
  readonly services: PaymentActivityDependencies & { readonly attester: Pick<Attester, 'sign'> };
}

/** Creates the worker that makes payments: the only one with the operator's key. */
export const createPaymentWorker = ({
  connection,
  namespace,
  services,
}: PaymentWorkerDependencies): Promise<Worker> =>
  Worker.create({
    connection,
    namespace,
    taskQueue: PAYMENTS_TASK_QUEUE,
    activities: {
      ...createPaymentActivities(services),
      ...createAttestationActivities(services.attester),
    },
    maxConcurrentActivityTaskExecutions: MAX_ACTIVITIES,
    maxHeartbeatThrottleInterval: HEARTBEAT_THROTTLE,
    shutdownGraceTime: SHUTDOWN_GRACE,
    shutdownForceTime: SHUTDOWN_FORCE,
  });
