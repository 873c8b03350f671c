import { Worker, type NativeConnection } from '@temporalio/worker';
import { createSessionHoldActivities } from '../activities/payment-sessions.js';
import { createPaymentActivities } from '../activities/payments.js';
import type { PaymentServices } from '../src/payment-services.js';
import { PAYMENTS_TASK_QUEUE } from '../workflows/ids.js';

/** Signers that pay, and those who wait for payments: nearly all of them only wait. */
const MAX_ACTIVITIES = 5_000;

/** How long what is under way may go on when the worker is told to end: it goes on elsewhere. */
const SHUTDOWN_GRACE = '1 second';
const SHUTDOWN_FORCE = '20 seconds';

/** Cancellations are heard by heartbeats; held back, they would take as long as the timeout. */
const HEARTBEAT_THROTTLE = '5 seconds';

export interface PaymentWorkerDependencies {
  readonly connection: NativeConnection;
  readonly namespace: string;
  readonly services: PaymentServices;
}

/** The worker that makes payments: the only one that has the operator's key. */
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
      ...createSessionHoldActivities(services.sessionHolds),
    },
    maxConcurrentActivityTaskExecutions: MAX_ACTIVITIES,
    maxHeartbeatThrottleInterval: HEARTBEAT_THROTTLE,
    shutdownGraceTime: SHUTDOWN_GRACE,
    shutdownForceTime: SHUTDOWN_FORCE,
  });
