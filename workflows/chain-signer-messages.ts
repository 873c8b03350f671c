import { defineSignal } from '@temporalio/workflow';

/** Wakes the signer because a payment is queued. */
export const wakeSignal = defineSignal('wake');
