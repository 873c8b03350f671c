import { WorkflowFailedError } from '@temporalio/client';
import type { ContainerStep, FakeAgent } from './fake-agent.js';

export const UNDO_PORT: readonly string[] = ['releasePort'];
/** Steps that undo a provisioning, in the required order. */
export const UNDO_ALL: readonly string[] = [
  'removeContainer',
  'removeNetwork',
  'undoVolume',
  'releasePort',
];

/** All steps on a container. */
export const CONTAINER_STEPS: readonly ContainerStep[] = [
  'ensureImage',
  'createVolume',
  'createNetwork',
  'createContainer',
  'startContainer',
  'awaitReady',
];

/** Returns the undone steps, each once, without retries. */
export const undone = (agent: FakeAgent): string[] =>
  agent.containerSteps.filter((step) => UNDO_ALL.includes(step));

/** Returns the failure of a run; undefined if the run succeeded. */
export async function failureOf(run: { result(): Promise<unknown> }): Promise<unknown> {
  try {
    await run.result();
  } catch (error) {
    if (error instanceof WorkflowFailedError) return error.cause;
    throw error;
  }
  return undefined;
}
