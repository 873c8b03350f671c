import type {
  ActivitySlotInfo,
  CustomSlotSupplier,
  SlotMarkUsedContext,
  SlotPermit,
  SlotReleaseContext,
  SlotReserveContext,
  WorkerTuner,
} from '@temporalio/worker';
import type { WatchdogActivities } from '../activities/watchdog.js';

/** What only waits nearly all of its time, for as long as an agent stays as it is. */
const WATCHING: readonly string[] = [
  'watchHealth',
  'watchDegraded',
] satisfies (keyof WatchdogActivities)[];

/** Slots of what the worker never runs. */
const NONE = { type: 'fixed-size', numSlots: 1 } as const;

interface DockerSlotLimits {
  /** Activities that work in Docker, at a time. */
  readonly dockerCalls: number;
  /** Agents that are watched at a time; beyond that, watching takes the others' slots. */
  readonly watched: number;
}

/**
 * Lets so many activities work in Docker at a time, and counts apart those that watch: an agent
 * that is degraded for days must not keep others from being started, however many there are.
 */
export function dockerSlots(limits: DockerSlotLimits): WorkerTuner {
  return {
    activityTaskSlotSupplier: new DockerSlots(limits),
    workflowTaskSlotSupplier: NONE,
    localActivityTaskSlotSupplier: NONE,
    nexusTaskSlotSupplier: NONE,
  };
}

/** A slot, which also pollers hold: only with the task it turns out what it is for. */
class Permit implements SlotPermit {
  watches = false;
}

class DockerSlots implements CustomSlotSupplier<ActivitySlotInfo> {
  readonly type = 'custom';
  #taken = 0;
  #watched = 0;
  /** At most one for each poller. */
  readonly #waiting = new Set<() => void>();

  readonly #limits: DockerSlotLimits;

  constructor(limits: DockerSlotLimits) {
    this.#limits = limits;
  }

  async reserveSlot(_context: SlotReserveContext, signal: AbortSignal): Promise<SlotPermit> {
    for (;;) {
      signal.throwIfAborted();
      const permit = this.tryReserveSlot();
      if (permit) return permit;
      await this.#change(signal);
    }
  }

  tryReserveSlot(): SlotPermit | null {
    if (this.#taken >= this.#limits.dockerCalls) return null;
    this.#taken++;
    return new Permit();
  }

  markSlotUsed({ slotInfo, permit }: SlotMarkUsedContext<ActivitySlotInfo>): void {
    if (!(permit instanceof Permit) || !WATCHING.includes(slotInfo.activityType)) return;
    if (this.#watched >= this.#limits.watched) return;
    permit.watches = true;
    this.#watched++;
    this.#free();
  }

  releaseSlot({ permit }: SlotReleaseContext<ActivitySlotInfo>): void {
    if (permit instanceof Permit && permit.watches) this.#watched--;
    else this.#free();
  }

  #free(): void {
    this.#taken--;
    const [first] = this.#waiting;
    first?.();
  }

  /** Resolves when a slot may have become free, or the signal has aborted. */
  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.#waiting.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener('abort', wake, { once: true });
    });
  }
}
