import { setBounded } from '../../lib/bounded-map.js';
import type { AgentContainers } from '../../docker/containers/agent-containers.js';
import type { ContainerState, ContainerWork } from '../../docker/containers/container-view.js';

/** Milliseconds from its start within which an agent must become ready (spec 8). */
export const STARTUP_LIMIT_MS = 60_000;

/** Absolute limit in milliseconds for a start that makes progress. */
const LONGEST_START_MS = 5 * 60_000;

/** Milliseconds without progress after which a start over its limit has failed. */
const STALLED_MS = 15_000;

/** Minimum milliseconds between two Docker samples of a container. */
const SAMPLE_MS = 4_000;

/** A container below these rates is idle; its health check needs less. */
const LEAST_CPU = 0.02;
const LEAST_BYTES_PER_SECOND = 64 * 1024;

/** More than start at a time. */
const MAX_SAMPLES = 1_000;

interface Sample {
  readonly startedAt: string;
  readonly work: ContainerWork;
  /** Unix milliseconds, like the next field. */
  readonly at: number;
  readonly progressAt: number;
}

/** Detects progress of a container that is not ready yet: it computes, reads or writes. */
export class StartProgress {
  readonly #samples = new Map<string, Sample>();
  readonly #containers: Pick<AgentContainers, 'work'>;

  constructor(containers: Pick<AgentContainers, 'work'>) {
    this.#containers = containers;
  }

  async isStarting(container: ContainerState): Promise<boolean> {
    const runningMs = runningForMs(container);
    if (runningMs > LONGEST_START_MS) return false;
    const idleMs = await this.idleForMs(container);
    return runningMs < STARTUP_LIMIT_MS || idleMs < STALLED_MS;
  }

  /** Returns the milliseconds since the last progress; the start counts as progress. */
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

  /** Returns the last sample. Docker resets all counters of a container when it starts. */
  #lastSample(id: string, startedAt: string): Sample {
    const known = this.#samples.get(id);
    if (known?.startedAt === startedAt) return known;
    const at = Date.parse(startedAt);
    return { startedAt, work: { cpuMs: 0, bytes: 0 }, at, progressAt: at };
  }
}

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
