import { ApplicationFailure, log, proxyActivities } from '@temporalio/workflow';
import type { ContainerActivities } from '../activities/containers.js';
import type { StartActivities } from '../activities/starts.js';
import type { AgentRef } from '../src/types/agent-ref.js';
import { containersTaskQueue, startsTaskQueue } from './ids.js';
import { proxyRecords } from './records.js';
import * as retries from './retries.js';

/** How many ports, each with its subnet, are tried when they turn out to be taken on the host. */
const MAX_PLACES = 20;

export interface BringUpOptions {
  /**
   * Of a provisioning, which makes the agent's memory as well: called once the agent has a port,
   * before anything is made on Docker.
   */
  readonly provisions?: () => void;
  /** Wait for Docker for as long as it is away, instead of failing after minutes. */
  readonly endless?: boolean;
}

/**
 * Makes what is missing of an agent's container, starts it, and waits until it answers. A memory that
 * is missing is never made, but by a provisioning: that fails, and `isMemoryMissing` tells it.
 */
export async function bringUp(agent: AgentRef, options: BringUpOptions = {}): Promise<void> {
  await startUp(agent, options);
  await awaitRunning(agent);
}

/**
 * Brings up again what ran before its Docker was away. All agents of the host come at once, so
 * what is still there is no more than started.
 */
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
 * Makes what is missing of an agent's container and starts it. A port or subnet that is taken on
 * the host means the next one. Nothing is undone here.
 *
 * @returns for how many milliseconds the container runs by now.
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
      // Docker looks for a container's network only when it starts it.
      await allSettled([
        docker.createNetwork.executeWithOptions({ summary }, [agent]),
        prepared.then(() => docker.createContainer(agent)),
      ]);
      return await starts.startContainer.executeWithOptions({ summary }, [agent]);
    } catch (error) {
      const taken = whatIsTaken(error);
      if (!taken || tried >= MAX_PLACES) throw error;
      log.warn(`${taken} is taken on the host`, { port });
      await docker.removeContainer(agent);
      await docker.removeNetwork(agent);
      // One look tells which subnets are taken; ports have to be tried.
      const passedOver = taken === 'subnet' ? await docker.takenPlaces(agent) : [];
      port = await record.reservePort(agent, port, passedOver);
    }
  }

  async function makeMemory(): Promise<void> {
    if ((await docker.createVolume(agent)) !== 'to-be-copied') return;
    // It is copied by containers of the image.
    await imageThere;
    await copy.copyMemory(agent);
  }
}

/** Waits for all, also when one fails: what is to be undone must not be under way. */
async function allSettled(steps: readonly Promise<unknown>[]): Promise<void> {
  const failure = (await Promise.allSettled(steps)).find((step) => step.status === 'rejected');
  if (failure) throw failure.reason;
}

/** What something of somebody else's holds: the port, or the subnet that belongs to it. */
function whatIsTaken(error: unknown): 'port' | 'subnet' | undefined {
  const cause = error instanceof Error ? error.cause : undefined;
  if (!(cause instanceof ApplicationFailure)) return undefined;
  if (cause.type === 'PortTakenError') return 'port';
  return cause.type === 'SubnetTakenError' ? 'subnet' : undefined;
}
