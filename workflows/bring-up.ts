import { ApplicationFailure, log, proxyActivities } from '@temporalio/workflow';
import type { ContainerActivities } from '../activities/containers.js';
import type { StartActivities } from '../activities/starts.js';
import type { AgentRef } from '../src/types/agent-ref.js';
import { containersTaskQueue, startsTaskQueue } from './ids.js';
import { proxyRecords } from './records.js';
import * as retries from './retries.js';

/** Maximum number of ports, each with its subnet, that are tried while they are in use on the host. */
const MAX_PLACES = 20;

export interface BringUpOptions {
  /** Set by a provisioning, which creates the memory: called with a port, before any change in Docker. */
  readonly provisions?: () => void;
  /** Wait for Docker without limit, instead of failing after minutes. */
  readonly endless?: boolean;
}

/**
 * Creates the missing parts of an agent's container, starts it, and waits until the agent answers. Only a
 * provisioning creates a memory; otherwise a missing one is a failure that `isMemoryMissing` recognizes.
 */
export async function bringUp(agent: AgentRef, options: BringUpOptions = {}): Promise<void> {
  await startUp(agent, options);
  await awaitRunning(agent);
}

/** Starts an agent after Docker's outage. Existing containers are only started, so that all agents return soon. */
export async function bringBack(agent: AgentRef): Promise<void> {
  const taskQueue = startsTaskQueue(agent.host);
  const starts = proxyActivities<StartActivities>({ ...retries.endlessAgentStart, taskQueue });

  if (!(await starts.startExisting(agent))) await startUp(agent, { endless: true });
  await awaitRunning(agent);
}

async function awaitRunning(agent: AgentRef): Promise<void> {
  const taskQueue = containersTaskQueue(agent.host);
  const record = proxyRecords();
  const readiness = proxyActivities<ContainerActivities>({ ...retries.readinessWait, taskQueue });

  await readiness.awaitReady(agent);
  await record.recordRunning(agent);
}

/**
 * Creates the missing parts of an agent's container and starts it, on the next port if a port or its subnet
 * is in use. Undoes nothing on failure. Returns the container's uptime in milliseconds.
 */
export async function startUp(agent: AgentRef, options: BringUpOptions = {}): Promise<number> {
  const taskQueue = containersTaskQueue(agent.host);
  const dockerCall = options.endless ? retries.endlessDockerCall : retries.dockerCall;
  const record = proxyRecords();
  const docker = proxyActivities<ContainerActivities>({ ...dockerCall, taskQueue });
  const image = proxyActivities<ContainerActivities>({ ...retries.imageCall, taskQueue });
  const copy = proxyActivities<ContainerActivities>({ ...retries.volumeCopy, taskQueue });
  const starts = proxyActivities<StartActivities>({
    ...(options.endless ? retries.endlessAgentStart : retries.agentStart),
    taskQueue: startsTaskQueue(agent.host),
  });

  let port = await record.reservePort(agent, 0);
  options.provisions?.();
  const imageThere = image.ensureImage(agent);
  const prepared = allSettled([
    imageThere,
    options.provisions ? makeMemory() : docker.requireVolume(agent),
  ]);
  for (let tried = 1; ; tried++) {
    const summary = `port ${port}`;
    try {
      // The container may be created beside its network: Docker needs the network only at the start.
      await allSettled([
        docker.createNetwork.executeWithOptions({ summary }, [agent]),
        prepared.then(() => docker.createContainer(agent)),
      ]);
      return await starts.startContainer.executeWithOptions({ summary }, [agent]);
    } catch (error) {
      const taken = whatIsTaken(error);
      if (!taken || tried >= MAX_PLACES) throw error;
      log.warn(`${taken} is in use on the host`, { port });
      await docker.removeContainer(agent);
      await docker.removeNetwork(agent);
      // Docker lists all subnets in use; ports must be tried.
      const passedOver = taken === 'subnet' ? await docker.takenPlaces(agent) : [];
      port = await record.reservePort(agent, port, passedOver);
    }
  }

  async function makeMemory(): Promise<void> {
    if ((await docker.createVolume(agent)) !== 'to-be-copied') return;
    // Containers of the image copy the memory.
    await imageThere;
    await copy.copyMemory(agent);
  }
}

/** Waits for all steps even if one fails: a step in flight cannot be undone. */
async function allSettled(steps: readonly Promise<unknown>[]): Promise<void> {
  const failure = (await Promise.allSettled(steps)).find((step) => step.status === 'rejected');
  if (failure) throw failure.reason;
}

function whatIsTaken(error: unknown): 'port' | 'subnet' | undefined {
  const cause = error instanceof Error ? error.cause : undefined;
  if (!(cause instanceof ApplicationFailure)) return undefined;
  if (cause.type === 'PortTakenError') return 'port';
  return cause.type === 'SubnetTakenError' ? 'subnet' : undefined;
}
