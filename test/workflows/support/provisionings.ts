import { WorkflowFailedError } from '@temporalio/client';
import type { ContainerStep, FakeAgent } from './fake-agent.js';

export const UNDO_PORT: readonly string[] = ['releasePort'];
/** All that undoes a provisioning, in the order it has to happen. */
export const UNDO_ALL: readonly string[] = [
  'removeContainer',
  'removeNetwork',
  'undoVolume',
  'releasePort',
];

/** Every step on a container. */
export const CONTAINER_STEPS: readonly ContainerStep[] = [
  'ensureImage',
  'createVolume',
  'createNetwork',
  'createContainer',
  'startContainer',
  'awaitReady',
];

/** What was undone, each once, however often it was tried. */
export const undone = (agent: FakeAgent): string[] =>
  agent.containerSteps.filter((step) => UNDO_ALL.includes(step));

/** What a run failed of; nothing when it succeeded. */
export async function failureOf(run: { result(): Promise<unknown> }): Promise<unknown> {
  try {
    await run.result();
  } catch (error) {
    if (error instanceof WorkflowFailedError) return error.cause;
    throw error;
  }
  return undefined;
}
