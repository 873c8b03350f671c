import type {
  CustomSlotSupplier,
  SlotInfo,
  SlotPermit,
  SlotReserveContext,
  WorkerTuner,
} from '@temporalio/worker';
import type { Logger } from 'pino';
import type { Database } from '../src/platform/database/database.js';
import { jittered } from '../src/lib/jitter.js';
import { pause } from '../src/lib/pause.js';

/** Milliseconds between two probes, and for the answer to a probe. */
const INTERVAL_MS = 2_000;
const ANSWER_MS = 5_000;

/** Concurrent tasks of each kind, equal to the SDK's defaults. */
const WORKFLOW_TASKS = 40;
const ACTIVITY_TASKS = 100;

/**
 * A gate that is open while this process reaches the database. Without it, a worker that reaches only
 * Temporal would poll workflows that other workers could process.
 */
export class DatabaseGate {
  #isOpen = true;
  readonly #waiting = new Set<() => void>();

  async keep(
    database: Pick<Database, 'ping'>,
    log: Logger,
    signal: AbortSignal,
    intervalMs = INTERVAL_MS,
  ): Promise<void> {
    while (!signal.aborted) {
      const failure = await answer(database);
      if (!signal.aborted) this.#set(failure, log);
      await pause(jittered(intervalMs), signal);
    }
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Resolves when an awaited change may have happened, or the signal has aborted. */
  change(signal: AbortSignal): Promise<void> {
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

  wake(): void {
    for (const wake of [...this.#waiting]) wake();
  }

  #set(failure: Error | undefined, log: Logger): void {
    if (this.#isOpen === (failure === undefined)) return;
    this.#isOpen = failure === undefined;
    if (failure) log.error({ err: failure }, 'no database: this worker polls no workflows');
    else log.info('the database is available again: this worker polls workflows again');
    this.wake();
  }
}

/** Returns a tuner that takes tasks only while the gate is open. Running tasks continue. */
export function gatedTuner(gate: DatabaseGate): WorkerTuner {
  return {
    workflowTaskSlotSupplier: new GatedSlots(gate, WORKFLOW_TASKS),
    activityTaskSlotSupplier: new GatedSlots(gate, ACTIVITY_TASKS),
    localActivityTaskSlotSupplier: { type: 'fixed-size', numSlots: ACTIVITY_TASKS },
    nexusTaskSlotSupplier: { type: 'fixed-size', numSlots: 1 },
  };
}

/** A fixed number of slots, granted while the gate is open. */
export class GatedSlots<Info extends SlotInfo = SlotInfo> implements CustomSlotSupplier<Info> {
  readonly type = 'custom';
  #taken = 0;

  readonly #gate: DatabaseGate;
  readonly #slots: number;

  constructor(gate: DatabaseGate, slots: number) {
    this.#gate = gate;
    this.#slots = slots;
  }

  async reserveSlot(_context: SlotReserveContext, signal: AbortSignal): Promise<SlotPermit> {
    for (;;) {
      signal.throwIfAborted();
      const permit = this.tryReserveSlot();
      if (permit) return permit;
      await this.#gate.change(signal);
    }
  }

  tryReserveSlot(): SlotPermit | null {
    if (!this.#gate.isOpen || this.#taken >= this.#slots) return null;
    this.#taken++;
    return {};
  }

  markSlotUsed(): void {
    // All slots are equal.
  }

  releaseSlot(): void {
    this.#taken--;
    this.#gate.wake();
  }
}

/** Returns the reason why the database does not answer; undefined when it does. */
async function answer(database: Pick<Database, 'ping'>): Promise<Error | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new Error(`The database did not answer within ${ANSWER_MS} ms`);
    timer = setTimeout(() => reject(error), ANSWER_MS);
  });
  try {
    await Promise.race([database.ping(), late]);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  } finally {
    clearTimeout(timer);
  }
}
