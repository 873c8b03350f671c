import { setBounded } from '../../lib/bounded-map.js';
import type { AgentContainers } from '../../docker/containers/agent-containers.js';
import type { ContainerState, ContainerWork } from '../../docker/containers/container-view.js';

/** Section 8 of the contract: how long an agent may take to answer, counted from its start. */
export const STARTUP_LIMIT_MS = 60_000;

/** What makes progress is given longer than that, but not for ever. */
const LONGEST_START_MS = 5 * 60_000;

/** Without any progress for this long, a start that is over its limit has failed. */
const STALLED_MS = 15_000;

/** Between two questions to Docker about the same container. */
const SAMPLE_MS = 4_000;

/** Less than this is what a container does that only waits, its health check included. */
const LEAST_CPU = 0.02;
const LEAST_BYTES_PER_SECOND = 64 * 1024;

/** Containers of which a sample is kept: more than start at a time. */
const MAX_SAMPLES = 1_000;

interface Sample {
  readonly startedAt: string;
  readonly work: ContainerWork;
  /** Unix milliseconds, as the next one. */
  readonly at: number;
  readonly progressAt: number;
}

/** Tells whether a container that does not answer yet is still at it: it computes, reads or writes. */
export class StartProgress {
  readonly #samples = new Map<string, Sample>();
  readonly #containers: Pick<AgentContainers, 'work'>;

  constructor(containers: Pick<AgentContainers, 'work'>) {
    this.#containers = containers;
  }

  /** Whether a running container may still be starting. */
  async isStarting(container: ContainerState): Promise<boolean> {
    const runningMs = runningForMs(container);
    if (runningMs > LONGEST_START_MS) return false;
    const idleMs = await this.idleForMs(container);
    return runningMs < STARTUP_LIMIT_MS || idleMs < STALLED_MS;
  }

  /** Milliseconds since a running container was last seen at work; its start counts as such. */
  async idleForMs(container: ContainerState): Promise<number> {
    const startedAt = container.startedAt ?? new Date().toISOString();
    const last = this.#lastSample(container.id, startedAt);
    const now = Date.now();
    if (now - last.at < SAMPLE_MS) return Math.max(0, now - last.progressAt);
    const work = (await this.#containers.work(container.id)) ?? last.work;
    const progressAt = hasWorked(last, work, now) ? now : last.progressAt;
    const sample = { startedAt, work, at: now, progressAt };
    setBounded(this.#samples, container.id, sample, MAX_SAMPLES);
    return now - progressAt;
  }

  /** At a start all figures of a container begin anew. */
  #lastSample(id: string, startedAt: string): Sample {
    const known = this.#samples.get(id);
    if (known?.startedAt === startedAt) return known;
    const at = Date.parse(startedAt);
    return { startedAt, work: { cpuMs: 0, bytes: 0 }, at, progressAt: at };
  }
}

/** Milliseconds since the container's last start. */
export function runningForMs(container: ContainerState): number {
  return Date.now() - Date.parse(container.startedAt ?? new Date().toISOString());
}

function hasWorked(last: Sample, work: ContainerWork, now: number): boolean {
  const elapsedMs = now - last.at;
  const bytesPerSecond = (work.bytes - last.work.bytes) / (elapsedMs / 1_000);
  return (
    work.cpuMs - last.work.cpuMs >= elapsedMs * LEAST_CPU ||
    bytesPerSecond >= LEAST_BYTES_PER_SECOND
  );
}
