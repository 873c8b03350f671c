import {
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  isCancellation,
  log,
  proxyActivities,
  proxyLocalActivities,
} from '@temporalio/workflow';
import type { AgentRef } from '../src/agents/agent-ref.js';
import type { ContainerActivities } from '../activities/containers.js';
import type { RecordActivities } from '../activities/records.js';
import { failureReason } from './failure-reason.js';
import { containersTaskQueue } from './ids.js';
import * as retries from './retries.js';

/** How many ports, each with its subnet, are tried when they turn out to be taken on the host. */
const MAX_PLACES = 20;

/** The failure of the whole, after everything was undone. Its details name what could not be. */
export const PROVISIONING_FAILED = 'ProvisioningFailed';

interface Compensation {
  readonly name: string;
  readonly run: () => Promise<unknown>;
}

/**
 * From a reserved name to a container that answers: a saga. Each compensation stands before its
 * step, because a step that failed may still have happened. They run last-in-first-out, cannot be
 * cancelled, and go on past one that fails.
 */
export async function provisionAgent(agent: AgentRef): Promise<void> {
  const taskQueue = containersTaskQueue(agent.host);
  const record = proxyLocalActivities<RecordActivities>(retries.records);
  const engine = proxyActivities<ContainerActivities>({ ...retries.engineCall, taskQueue });
  const image = proxyActivities<ContainerActivities>({ ...retries.imageCall, taskQueue });
  const readiness = proxyActivities<ContainerActivities>({ ...retries.readinessWait, taskQueue });
  const undo = proxyActivities<ContainerActivities>({ ...retries.compensation, taskQueue });

  const compensations: Compensation[] = [];
  const compensateBy = (name: string, run: Compensation['run']) =>
    compensations.push({ name, run });

  try {
    compensateBy('releasePort', () => record.releasePort(agent));
    let port = await record.reservePort(agent, 0);

    compensateBy('removeVolume', () => undo.removeVolume(agent));
    compensateBy('removeNetwork', () => undo.removeNetwork(agent));
    compensateBy('removeContainer', () => undo.removeContainer(agent));
    const prepared = allSettled([image.ensureImage(agent), engine.createVolume(agent)]);

    for (let tried = 1; ; tried++) {
      const summary = `port ${port}`;
      try {
        // The engine looks for a container's network only when it starts it.
        await allSettled([
          engine.createNetwork.executeWithOptions({ summary }, [agent]),
          prepared.then(() => engine.createContainer(agent)),
        ]);
        await engine.startContainer.executeWithOptions({ summary }, [agent]);
        break;
      } catch (error) {
        if (!isPlaceTaken(error) || tried >= MAX_PLACES) throw error;
        log.warn('port or subnet is taken on the host', { port });
        await engine.removeContainer(agent);
        await engine.removeNetwork(agent);
        port = await record.reservePort(agent, port);
      }
    }
    await readiness.awaitReady(agent);
    await record.recordRunning(agent);
  } catch (error) {
    const cancelled = isCancellation(error) || CancellationScope.current().consideredCancelled;
    const leftOver = await CancellationScope.nonCancellable(() => undoAll(compensations));
    // A step that fails when it is cancelled is a cancellation all the same.
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

/** Runs what undoes the steps, newest first. Returns the names of those that failed. */
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

/** Waits for all, also when one fails: what is to be undone must not be under way. */
async function allSettled(steps: readonly Promise<unknown>[]): Promise<void> {
  const failure = (await Promise.allSettled(steps)).find((step) => step.status === 'rejected');
  if (failure) throw failure.reason;
}

/** Something of somebody else's holds the port or the subnet that belongs to it. */
function isPlaceTaken(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return (
    cause instanceof ApplicationFailure &&
    (cause.type === 'PortTakenError' || cause.type === 'SubnetTakenError')
  );
}
