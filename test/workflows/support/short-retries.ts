import type { ActivityOptions, LocalActivityOptions } from '@temporalio/common';

// Stands in for workflows/retries.ts: a running step stops skipped time, so its timeouts pass in real
// time. Steps that wait for Docker keep their timeouts and attempts.

export { REQUESTED, attestation, mail, measurement } from '../../../workflows/retries.js';

const soon = '300 milliseconds';
const retry = { initialInterval: '1 millisecond', maximumAttempts: 2 } as const;

export const records: LocalActivityOptions = {
  startToCloseTimeout: soon,
  scheduleToCloseTimeout: '600 milliseconds',
  retry: { initialInterval: '1 millisecond', maximumAttempts: 6 },
};
export const recordsAnywhere: ActivityOptions = {
  startToCloseTimeout: soon,
  retry: { initialInterval: '1 millisecond', maximumInterval: '100 milliseconds' },
};
const onContainer: ActivityOptions = { startToCloseTimeout: soon, retry };
const cancellable: ActivityOptions = {
  ...onContainer,
  cancellationType: 'WAIT_CANCELLATION_COMPLETED',
};
export const dockerCall = cancellable;
export const agentStart = cancellable;
export const endlessAgentStart = cancellable;
export const imageCall = cancellable;
export const readinessWait = cancellable;
export const volumeCopy = cancellable;
export const removal = onContainer;
export const compensation = onContainer;
export const healthWatch: ActivityOptions = { ...onContainer, cancellationType: 'TRY_CANCEL' };
export const endlessDockerCall = cancellable;
export const observation: ActivityOptions = { ...onContainer, cancellationType: 'TRY_CANCEL' };
export const boundedObservation = observation;
export const degradedWatch = observation;
export const crashReport = onContainer;
export const reconciliation = onContainer;
export const retention = onContainer;
export const ledgerCheck = onContainer;
export const accountDeletion = onContainer;
export const paying = onContainer;
export const busDelivery = onContainer;
export const emailCall = onContainer;
export const processorCall = onContainer;
export const billingPass = onContainer;
export const untilOver = onContainer;
export const handingOver = onContainer;
export const ownerTurn: ActivityOptions = {
  scheduleToStartTimeout: '2 seconds',
  startToCloseTimeout: '5 seconds',
  retry,
};
export const emailTurn = ownerTurn;
export const heartbeat: ActivityOptions = {
  scheduleToStartTimeout: '2 seconds',
  startToCloseTimeout: '5 seconds',
  retry: { maximumAttempts: 1 },
};
export const videoRequest = onContainer;
export const videoCheck = onContainer;
export const videoFile = onContainer;
export const videoCancel = onContainer;
