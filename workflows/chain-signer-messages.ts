import { defineSignal } from '@temporalio/workflow';

/** There is something to be paid. */
export const wakeSignal = defineSignal('wake');
