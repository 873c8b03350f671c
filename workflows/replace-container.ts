import {
  ApplicationFailure,
  CancellationScope,
  isCancellation,
  log,
  proxyActivities,
} from '@temporalio/workflow';
import type { ContainerActivities } from '../activities/containers.js';
import type { ReleaseActivities, ReleaseRecordActivities } from '../activities/releases.js';
import type { AgentRef } from '../src/types/agent-ref.js';
import { operationRules, type OperationKind } from '../src/types/operation-kinds.js';
import { bringUp } from './bring-up.js';
import { failureReason } from './failure-reason.js';
import { containersTaskQueue } from './ids.js';
import { isMemoryMissing, MEMORY_MISSING } from './memory-missing.js';
import { proxyRecords } from './records.js';
import * as retries from './retries.js';

/** Failure type of an operation that left the agent as before. */
export const AGENT_UNHARMED = 'AgentUnharmed';

export interface Replacement {
  readonly agent: AgentRef;
  readonly operationId: string;
  readonly desired: 'running' | 'stopped';
  readonly provisioned: boolean;
}

type ReplacingKind = Extract<
  OperationKind,
  'configure' | 'update' | 'reset-memory' | 'restore' | 'reset-empty'
>;

/**
 * Replaces an agent's image, configuration or memory, and rolls back if the agent does not start. New
 * containers never write to the old memory, except after `configure`, which keeps it. A deletion can cancel
 * the replacement at any point; it removes all leftovers.
 */
export async function replaceContainer(
  kind: ReplacingKind,
  { agent, operationId, desired, provisioned }: Replacement,
): Promise<void> {
  const taskQueue = containersTaskQueue(agent.host);
  const record = proxyRecords<ReleaseRecordActivities>();
  const docker = proxyActivities<ContainerActivities & ReleaseActivities>({
    ...retries.dockerCall,
    taskQueue,
  });
  const image = proxyActivities<ReleaseActivities>({ ...retries.imageCall, taskQueue });
  const copy = proxyActivities<ReleaseActivities>({ ...retries.volumeCopy, taskQueue });
  const isUp = provisioned && desired === 'running';

  // Checked first: an agent is not stopped for an image that cannot be pulled.
  if (kind === 'update' && !(await findsImage())) return;
  if (!isUp && operationRules(kind).whileStopped === 'noted') {
    return kind === 'update' ? record.recordUpdate(agent, operationId) : undefined;
  }
  if (!provisioned) return;
  const hasMemory = await findsMemory();
  try {
    await docker.stopContainer(agent);
    if (kind !== 'configure') {
      await docker.retainContainer(agent);
      await copy.makeVolume(agent, operationId);
    }
    await record.beginRelease(agent, operationId);
    if (isUp) await bringUp(agent);
  } catch (error) {
    if (isCancelled(error)) throw error;
    await rollBack(failureReason(error));
  }
  await record.keepRelease(agent, operationId, hasMemory);
  await removeLeftovers();

  async function findsImage(): Promise<boolean> {
    try {
      return await image.findImage(agent, operationId);
    } catch (error) {
      if (isCancelled(error)) throw error;
      throw unharmed(failureReason(error));
    }
  }

  /**
   * Reports whether the agent has a memory. A missing one is an error, except for operations that replace it;
   * `reset-empty` requires that it is missing.
   */
  async function findsMemory(): Promise<boolean> {
    try {
      await docker.requireVolume(agent);
    } catch (error) {
      if (isCancelled(error)) throw error;
      if (isMemoryMissing(error) && (kind === 'restore' || kind === 'reset-empty')) return false;
      await record.rollBackRelease(agent, operationId);
      throw isMemoryMissing(error) ? error : unharmed(failureReason(error));
    }
    if (kind !== 'reset-empty') return true;
    throw unharmed(
      'The agent has its memory; reset-memory archives the memory and creates an empty one',
    );
  }

  async function rollBack(reason: string): Promise<never> {
    log.warn('rolling back', { kind, reason });
    // Rolled back first, so that any later start uses the previous release.
    await record.rollBackRelease(agent, operationId);
    let failure: unknown;
    try {
      await docker.stopContainer(agent);
      await docker.restoreContainer(agent);
      if (isUp) await bringUp(agent);
    } catch (error) {
      if (isCancelled(error)) throw error;
      failure = error;
    }
    await removeLeftovers();
    if (failure !== undefined) {
      const both = `${reason}; the rollback failed: ${failureReason(failure)}`;
      const type = isMemoryMissing(failure) ? MEMORY_MISSING : 'RollbackFailed';
      throw ApplicationFailure.nonRetryable(both, type);
    }
    throw unharmed(`${reason}; the agent was rolled back to its previous state`);
  }

  /** Removes leftovers; any that remain are removed with the next replacement, or with the agent. */
  async function removeLeftovers(): Promise<void> {
    try {
      await docker.removeLeftovers(agent);
    } catch (error) {
      if (isCancelled(error)) throw error;
      log.warn('leftovers of a replacement could not be removed', { reason: failureReason(error) });
    }
  }
}

export function isUnharmed(error: unknown): boolean {
  return error instanceof ApplicationFailure && error.type === AGENT_UNHARMED;
}

const unharmed = (reason: string): ApplicationFailure =>
  ApplicationFailure.nonRetryable(reason, AGENT_UNHARMED);

/** Reports whether an error counts as a cancellation: a step that fails during one would not have finished. */
const isCancelled = (error: unknown): boolean =>
  isCancellation(error) || CancellationScope.current().consideredCancelled;
