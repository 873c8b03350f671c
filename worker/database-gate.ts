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

/** Between two questions, and how long an answer may take. */
const INTERVAL_MS = 2_000;
const ANSWER_MS = 5_000;

/** Tasks of each kind at a time, as many as the SDK has by itself. */
const WORKFLOW_TASKS = 40;
const ACTIVITY_TASKS = 100;

/**
 * Open as long as this process reaches the database. A worker that reaches Temporal alone would take
 * workflows from those that could go on with them.
 */
export class DatabaseGate {
  #isOpen = true;
  readonly #waiting = new Set<() => void>();

  /** Asks the database again and again until the signal aborts. */
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

  /** Resolves when something that was waited for may have come, or the signal has aborted. */
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

  /** Lets those look again that wait for a change. */
  wake(): void {
    for (const wake of [...this.#waiting]) wake();
  }

  #set(failure: Error | undefined, log: Logger): void {
    if (this.#isOpen === (failure === undefined)) return;
    this.#isOpen = failure === undefined;
    if (failure) log.error({ err: failure }, 'no database: this worker takes no workflows');
    else log.info('the database is back: this worker takes workflows again');
    this.wake();
  }
}

/** Takes work only while the gate is open. What has begun goes on. */
export function gatedTuner(gate: DatabaseGate): WorkerTuner {
  return {
    workflowTaskSlotSupplier: new GatedSlots(gate, WORKFLOW_TASKS),
    activityTaskSlotSupplier: new GatedSlots(gate, ACTIVITY_TASKS),
    localActivityTaskSlotSupplier: { type: 'fixed-size', numSlots: ACTIVITY_TASKS },
    nexusTaskSlotSupplier: { type: 'fixed-size', numSlots: 1 },
  };
}

/** So many slots, which are given while the gate is open. */
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
    // Every one counts alike.
  }

  releaseSlot(): void {
    this.#taken--;
    this.#gate.wake();
  }
}

/** Why the database does not answer; undefined when it does. */
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
