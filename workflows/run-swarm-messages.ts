import { defineSignal } from '@temporalio/workflow';

/** Cancels a swarm: names the round after which no further agent is asked. */
export const cancelSwarm = defineSignal<[round: number]>('cancelSwarm');
