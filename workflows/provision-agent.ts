import {
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  isCancellation,
  log,
  proxyActivities,
} from '@temporalio/workflow';
import type { AgentRef } from '../src/types/agent-ref.js';
import type { ContainerActivities } from '../activities/containers.js';
import { bringUp } from './bring-up.js';
import { failureReason } from './failure-reason.js';
import { containersTaskQueue } from './ids.js';
import { proxyRecords } from './records.js';
import * as retries from './retries.js';

/** The details of this failure name the steps that could not be undone. */
export const PROVISIONING_FAILED = 'ProvisioningFailed';

interface Compensation {
  readonly name: string;
  readonly run: () => Promise<unknown>;
}

export interface ProvisionAgentInput extends AgentRef {
  /** Version of the watchdog's memory since the operation began. */
  readonly version: number;
}

/**
 * Provisions an agent as a saga. Each compensation is registered before its step, because a failed step may
 * have taken effect. Compensations run last-in-first-out, cannot be cancelled, and continue past a failure.
 */
export async function provisionAgent({ version, ...agent }: ProvisionAgentInput): Promise<void> {
  const taskQueue = containersTaskQueue(agent.host);
  const record = proxyRecords();
  const undo = proxyActivities<ContainerActivities>({ ...retries.compensation, taskQueue });

  const compensations: Compensation[] = [];
  const compensateBy = (name: string, run: Compensation['run']) =>
    compensations.push({ name, run });

  try {
    compensateBy('releasePort', () => record.releasePort(agent, version));
    await bringUp(agent, {
      provisions: () => {
        compensateBy('undoVolume', () => undo.undoVolume(agent));
        compensateBy('removeNetwork', () => undo.removeNetwork(agent));
        compensateBy('removeContainer', () => undo.removeContainer(agent));
      },
    });
  } catch (error) {
    const cancelled = isCancellation(error) || CancellationScope.current().consideredCancelled;
    const leftOver = await CancellationScope.nonCancellable(() => undoAll(compensations));
    // A step that fails during cancellation counts as cancelled.
    if (cancelled) throw isCancellation(error) ? error : new CancelledFailure('Cancelled');
    throw ApplicationFailure.create({
      type: PROVISIONING_FAILED,
      message: failureReason(error),
      nonRetryable: true,
      details: [{ leftOver }],
      cause: error instanceof Error ? error : undefined,
    });
  }
}

/** Runs the compensations, newest first, and returns the names of those that failed. */
async function undoAll(compensations: readonly Compensation[]): Promise<string[]> {
  const failed: string[] = [];
  for (const compensation of [...compensations].reverse()) {
    try {
      await compensation.run();
    } catch (error) {
      log.error('compensation failed', {
        compensation: compensation.name,
        reason: failureReason(error),
      });
      failed.push(compensation.name);
    }
  }
  return failed;
}
