import { SIGKILL_EXIT_CODE } from './container-view.js';
import type { DeathCause } from '../../types/watchdog.js';
import { setBounded } from '../../lib/bounded-map.js';
import type { DockerEvent } from './docker-events.js';

/** The end of an agent's container, as Docker told it. */
export interface ContainerDeath extends Omit<DockerEvent, 'action' | 'signal' | 'at'> {
  readonly cause: DeathCause;
  /** Unix milliseconds, by Docker's clock. */
  readonly at: number;
}

/**
 * How long after a death what explains it may come: 300 ms usually, and seconds while Docker is
 * busy. Only a death by somebody's signal, without a stop, is told that much later.
 */
const STOP_MS = 5_000;
const OUT_OF_MEMORY_MS = 100;

/** A signal that was sent, or memory that ran out, longer before the death than this did not cause it. */
const SIGNAL_COUNTS_NS = 60_000_000_000n;
const OUT_OF_MEMORY_COUNTS_NS = 10_000_000_000n;

/** Containers of which something is remembered; the oldest are forgotten first. */
const MAX_REMEMBERED = 10_000;

const SIGKILL = '9';

interface Signalled {
  readonly at: bigint;
  /** A stop asks first, and kills after it; a kill does not ask. */
  readonly wasAsked: boolean;
}

interface Unexplained {
  readonly death: DockerEvent;
  readonly wasSignalled: boolean;
  /** By this process's clock: a death is told then, explained or not. */
  readonly dueAt: number;
}

/**
 * Finds out from the order of a container's events how it came to its end. A death that something
 * may still explain is held back for a moment; every other is told at once.
 */
export class DeathCauses {
  readonly #signalled = new Map<string, Signalled>();
  /** When something in the container was killed for want of memory: the agent itself, or a child of it. */
  readonly #outOfMemory = new Map<string, bigint>();
  readonly #unexplained = new Map<string, Unexplained>();

  /** @returns the death that this event settles. */
  hear(event: DockerEvent, now = Date.now()): ContainerDeath | undefined {
    const { containerId } = event;
    switch (event.action) {
      case 'start':
        this.#outOfMemory.delete(containerId);
        this.#signalled.delete(containerId);
        return this.#settle(containerId);
      case 'kill':
        const wasAsked =
          event.signal !== SIGKILL || this.#signalled.get(containerId)?.wasAsked === true;
        setBounded(this.#signalled, containerId, { at: event.at, wasAsked }, MAX_REMEMBERED);
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

  /** Milliseconds until a death is to be told as it is; undefined when none is held back. */
  dueIn(now = Date.now()): number | undefined {
    if (this.#unexplained.size === 0) return undefined;
    const times = [...this.#unexplained.values()].map(({ dueAt }) => dueAt - now);
    return Math.max(0, Math.min(...times));
  }

  /** The deaths that nothing more is waited for; all of them with `now` left at infinity. */
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
    const isOut = outOfMemoryAt !== undefined && event.at - outOfMemoryAt < OUT_OF_MEMORY_COUNTS_NS;
    if (isOut && event.exitCode === SIGKILL_EXIT_CODE) return toDeath(event, 'oom');
    const wasSignalled = signalled !== undefined && event.at - signalled.at < SIGNAL_COUNTS_NS;
    const hold = (forMs: number) => {
      this.#unexplained.set(containerId, { death: event, wasSignalled, dueAt: now + forMs });
      return undefined;
    };
    if (wasSignalled && signalled.wasAsked) return hold(STOP_MS);
    // The system's own killing for want of memory may be told after what it did.
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

/** Exit codes above 128 are those of signals: 128 and the signal's number. */
function causeOf({ exitCode }: DockerEvent, wasSignalled: boolean): DeathCause {
  return wasSignalled || (exitCode !== null && exitCode > 128) ? 'kill' : 'exit';
}

function toDeath(event: DockerEvent, cause: DeathCause): ContainerDeath {
  const { agentId, userId, containerId, exitCode, at } = event;
  return { agentId, userId, containerId, cause, exitCode, at: Number(at / 1_000_000n) };
}
