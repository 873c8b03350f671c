import { defineSignal } from '@temporalio/workflow';

/** Cancels a swarm: names the round after which no further question is sent. */
export const cancelSwarm = defineSignal<[round: number]>('cancelSwarm');
