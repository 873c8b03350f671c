import type { Logger } from 'pino';
import type { MemorySizes } from '../src/agents/memory/memory-sizes.js';
import { stopFullAgent } from '../src/agents/operations/stop-full.js';
import type { AgentSupervisors } from '../src/agents/operations/supervisors.js';
import { DockerUnavailableError } from '../src/docker/containers/container-errors.js';
import type { DiskSpace, DockerDisk } from '../src/docker/containers/docker-disk.js';
import type { Database } from '../src/platform/database/database.js';
import { ConflictError, UnavailableError } from '../src/lib/errors.js';
import { jittered } from '../src/lib/jitter.js';
import { periodically } from '../src/platform/process/periodically.js';

/** Milliseconds between two checks of the host's free disk space. */
const TICK_MS = 10_000;

/** Milliseconds between two measurements of a memory; the shorter if free space is low or unknown. */
const PERIOD_MS = 10 * 60_000;
const CAREFUL_PERIOD_MS = 3 * 60_000;

/** Milliseconds between two measurements while the disk is filling up. */
const HURRIED_PERIOD_MS = 20_000;

/** Drop of free space, as a share, that triggers early measurements. */
const FALL = 0.1;

const PAGE = 64;

export interface MeasuringParts {
  readonly database: Database;
  readonly supervisors: AgentSupervisors;
  readonly memorySizes: MemorySizes;
  readonly docker: { readonly disk: Pick<DockerDisk, 'space'> };
  readonly host: string;
  readonly log: Logger;
}

/** Keeps the memories of a host's agents within their limit, until the signal aborts. */
export function measureMemories(parts: MeasuringParts, signal: AbortSignal): Promise<void> {
  const { docker, log } = parts;
  const pace = new MeasuringPace();
  const failure = 'memories could not be measured, retrying';
  return periodically({ everyMs: TICK_MS, failure, log, work }, signal);

  async function work(): Promise<void> {
    try {
      await measureDue(parts, jittered(pace.periodAt(await docker.disk.space())), signal);
    } catch (error) {
      // Without its engine no agent can write.
      if (!(error instanceof DockerUnavailableError)) throw error;
    }
  }
}

/** The greatest age of a measurement, depending on the host's free disk space. */
export class MeasuringPace {
  /** Free bytes at the last hurried measurement of all memories, or the highest value since. */
  #free: number | undefined;

  /** Returns the period in milliseconds. */
  periodAt(space: DiskSpace | undefined): number {
    if (!space) return CAREFUL_PERIOD_MS;
    this.#free = Math.max(this.#free ?? 0, space.free);
    if (space.free > this.#free * (1 - FALL)) return space.low ? CAREFUL_PERIOD_MS : PERIOD_MS;
    this.#free = space.free;
    return HURRIED_PERIOD_MS;
  }
}

export async function measureDue(
  { database, supervisors, memorySizes, host, log }: MeasuringParts,
  olderThanMs: number,
  signal: AbortSignal,
): Promise<void> {
  const began = Date.now();
  // Memories measured since the start of this call are not due again, however long the call takes.
  const due = () => memorySizes.due(host, olderThanMs + Date.now() - began, PAGE);
  for (let memories = await due(); memories.length > 0; memories = await due()) {
    for (const { agentId, volume } of await memorySizes.measure(memories)) {
      log.warn({ agentId, volume }, 'a memory is larger than could be counted');
    }
    await stopAllFull();
    if (signal.aborted) return;
  }
  await stopAllFull();

  async function stopAllFull(): Promise<void> {
    for (const { agent, reason } of await memorySizes.full(host)) {
      const { id: agentId } = agent;
      try {
        await stopFullAgent({ database, supervisors }, agent, reason);
        log.warn({ agentId, reason }, 'an agent is stopped because its memory is full');
      } catch (error) {
        if (!(error instanceof ConflictError || error instanceof UnavailableError)) throw error;
        log.info({ agentId, err: error }, 'an agent with a full memory could not be stopped yet');
      }
    }
  }
}
