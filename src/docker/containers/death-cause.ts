import { SIGKILL_EXIT_CODE } from './container-view.js';
import type { DeathCause } from '../../types/watchdog.js';
import { setBounded } from '../../lib/bounded-map.js';
import type { DockerEvent } from './docker-events.js';

export interface ContainerDeath extends Omit<DockerEvent, 'action' | 'signal' | 'at'> {
  readonly cause: DeathCause;
  /** Unix milliseconds, by Docker's clock. */
  readonly at: number;
}

/**
 * Milliseconds to wait for an explanation: usually 300 ms, but seconds while Docker is busy. Only a death by
 * a signal without a stop is reported that late.
 */
const STOP_MS = 5_000;
const OUT_OF_MEMORY_MS = 100;

/** Nanoseconds before a death within which a signal, or memory exhaustion, counts as its cause. */
export const SIGNAL_COUNTS_NS = 60_000_000_000n;
const OUT_OF_MEMORY_COUNTS_NS = 10_000_000_000n;

const MAX_REMEMBERED = 10_000;

const SIGKILL = '9';

interface Signalled {
  readonly at: bigint;
  /** A stop requests shutdown before it kills; a kill does not. */
  readonly wasRequested: boolean;
}

interface Unexplained {
  readonly death: DockerEvent;
  readonly wasSignalled: boolean;
  /** Time by this process's clock at which the death is reported, explained or not. */
  readonly dueAt: number;
}

/**
 * Derives the cause of a container's death from the order of its events. A death that a later event may
 * explain is held back briefly; all others are reported at once.
 */
export class DeathCauses {
  readonly #signalled = new Map<string, Signalled>();
  /** Time of the last out-of-memory kill in a container, of the agent or a child process. */
  readonly #outOfMemory = new Map<string, bigint>();
  readonly #unexplained = new Map<string, Unexplained>();

  /** Processes an event, and returns the death that it settles. */
  record(event: DockerEvent, now = Date.now()): ContainerDeath | undefined {
    const { containerId } = event;
    switch (event.action) {
      case 'start':
        this.#outOfMemory.delete(containerId);
        this.#signalled.delete(containerId);
        return this.#settle(containerId);
      case 'kill':
        const wasRequested =
          event.signal !== SIGKILL || this.#signalled.get(containerId)?.wasRequested === true;
        setBounded(this.#signalled, containerId, { at: event.at, wasRequested }, MAX_REMEMBERED);
        return undefined;
      case 'oom':
        if (this.#unexplained.has(containerId)) return this.#settle(containerId, 'oom');
        setBounded(this.#outOfMemory, containerId, event.at, MAX_REMEMBERED);
        return undefined;
      case 'stop':
        return this.#settle(containerId, 'stop');
      case 'die':
        return this.#die(event, now);
    }
  }

  /** Returns the milliseconds until the next held-back death is due; undefined if there is none. */
  dueIn(now = Date.now()): number | undefined {
    if (this.#unexplained.size === 0) return undefined;
    const times = [...this.#unexplained.values()].map(({ dueAt }) => dueAt - now);
    return Math.max(0, Math.min(...times));
  }

  /** Yields the deaths whose wait is over; all of them by default. */
  *due(now = Number.POSITIVE_INFINITY): Generator<ContainerDeath> {
    for (const [containerId, { dueAt }] of this.#unexplained) {
      const death = dueAt <= now ? this.#settle(containerId) : undefined;
      if (death) yield death;
    }
  }

  #die(event: DockerEvent, now: number): ContainerDeath | undefined {
    const { containerId } = event;
    const outOfMemoryAt = this.#outOfMemory.get(containerId);
    const signalled = this.#signalled.get(containerId);
    this.#outOfMemory.delete(containerId);
    this.#signalled.delete(containerId);
    const wasSignalled = signalled !== undefined && event.at - signalled.at < SIGNAL_COUNTS_NS;
    // A later signal is the cause: memory ran out for a child process, which the container survived.
    const isOut =
      outOfMemoryAt !== undefined &&
      event.at - outOfMemoryAt < OUT_OF_MEMORY_COUNTS_NS &&
      !(wasSignalled && signalled.at > outOfMemoryAt);
    if (isOut && event.exitCode === SIGKILL_EXIT_CODE) return toDeath(event, 'oom');
    const hold = (forMs: number) => {
      this.#unexplained.set(containerId, { death: event, wasSignalled, dueAt: now + forMs });
      return undefined;
    };
    if (wasSignalled && signalled.wasRequested) return hold(STOP_MS);
    // The event of an out-of-memory kill may arrive after the death.
    if (!wasSignalled && event.exitCode === SIGKILL_EXIT_CODE) return hold(OUT_OF_MEMORY_MS);
    return toDeath(event, causeOf(event, wasSignalled));
  }

  #settle(containerId: string, cause?: DeathCause): ContainerDeath | undefined {
    const held = this.#unexplained.get(containerId);
    if (!held) return undefined;
    this.#unexplained.delete(containerId);
    return toDeath(held.death, cause ?? causeOf(held.death, held.wasSignalled));
  }
}

/** Derives a cause from the exit code: above 128 it is 128 plus a signal's number. */
function causeOf({ exitCode }: DockerEvent, wasSignalled: boolean): DeathCause {
  return wasSignalled || (exitCode !== null && exitCode > 128) ? 'kill' : 'exit';
}

function toDeath(event: DockerEvent, cause: DeathCause): ContainerDeath {
  const { agentId, userId, containerId, exitCode, at } = event;
  return { agentId, userId, containerId, cause, exitCode, at: Number(at / 1_000_000n) };
}
