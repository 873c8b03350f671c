import type { AgentContainers } from '../../docker/containers/agent-containers.js';
import {
  DockerRefusedError,
  DockerUnavailableError,
} from '../../docker/containers/container-errors.js';
import type { ContainerReading, ContainerSummary } from '../../docker/containers/container-view.js';
import { FairLimiter } from '../../lib/fair-limiter.js';

/** Containers read concurrently. */
const READ_AT_ONCE = 20;

/** Milliseconds after which a pass begins no further reading, so that the next pass starts on time. */
const ENOUGH_MS = 40_000;

/** Milliseconds between two readings, beyond which their difference belongs to no single minute. */
const MAX_GAP_MS = 150_000;

/** Measurements of an agent's container between two readings. */
export interface Sample {
  readonly agentId: string;
  readonly userId: string;
  /** 100 is one core fully used. */
  readonly cpuPercent: number;
  readonly memoryBytes: number;
  readonly memoryLimitBytes: number;
  readonly networkIn: number;
  readonly networkOut: number;
}

/** Measures a host's agents by the differences of their containers' counters. */
export class AgentMeter {
  readonly #containers: Pick<AgentContainers, 'list' | 'reading'>;
  /** The last readings, by container. */
  #before: ReadonlyMap<string, ContainerReading> = new Map();

  constructor(containers: Pick<AgentContainers, 'list' | 'reading'>) {
    this.#containers = containers;
  }

  /**
   * Reads every running container once. A container without a reading before, or whose reading fails, has no
   * sample. @throws DockerUnavailableError
   */
  async measure(): Promise<Sample[]> {
    const end = performance.now() + ENOUGH_MS;
    const all = await this.#containers.list();
    const limiter = new FairLimiter({ atOnce: READ_AT_ONCE, perOwner: READ_AT_ONCE });
    const readings = new Map<string, ContainerReading>();
    const read = async ({ id, userId }: ContainerSummary) =>
      limiter.run({ owner: userId }, async () => {
        if (performance.now() > end) return;
        const reading = await this.#containers.reading(id).catch(unlessOfDocker);
        if (reading) readings.set(id, reading);
      });
    const isRunning = ({ agentId, status }: ContainerSummary) =>
      status === 'running' && agentId !== '';
    const running = all.filter(isRunning);
    await Promise.all(running.map(read));
    const before = this.#before;
    this.#before = readings;
    return running.flatMap(({ id, agentId, userId }) => {
      const work = workBetween(before.get(id), readings.get(id));
      return work ? [{ agentId, userId, ...work }] : [];
    });
  }
}

/** Rethrows other errors: Docker refuses to read a container being removed, and may be slow for one of many. */
function unlessOfDocker(error: unknown): undefined {
  const isOfDocker = error instanceof DockerRefusedError || error instanceof DockerUnavailableError;
  if (!isOfDocker) throw error;
}

/** Returns the work between two readings of one container; undefined if it was started in between. */
function workBetween(
  before: ContainerReading | undefined,
  now: ContainerReading | undefined,
): Omit<Sample, 'agentId' | 'userId'> | undefined {
  if (!before || !now) return undefined;
  const elapsedMs = now.readAt - before.readAt;
  const cpuMs = now.cpuMs - before.cpuMs;
  const networkIn = now.networkReceivedBytes - before.networkReceivedBytes;
  const networkOut = now.networkSentBytes - before.networkSentBytes;
  const isSameRun = cpuMs >= 0 && networkIn >= 0 && networkOut >= 0;
  if (!isSameRun || elapsedMs <= 0 || elapsedMs > MAX_GAP_MS) return undefined;
  const { memoryBytes, memoryLimitBytes } = now;
  const cpuPercent = (cpuMs / elapsedMs) * 100;
  return { cpuPercent, memoryBytes, memoryLimitBytes, networkIn, networkOut };
}
