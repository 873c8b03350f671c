import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../database/database.js';
import { TooManyRequestsError } from '../errors.js';
import type { PaymentSessionState } from './states.js';

/** Between two looks, in milliseconds. */
const LOOK_MS = 200;

/** Requests of one process that wait at a time: each holds a connection of its client. */
const MAX_WAITING = 500;

/** Waits for sessions to leave a state, however many, with one statement for all of them at a time. */
export class SessionWatch {
  readonly #database: Database;
  readonly #left: PaymentSessionState;
  readonly #awaited = new Map<string, number>();
  #waiting = 0;
  #look: Promise<ReadonlyMap<string, PaymentSessionState>> | undefined;

  /** @param left the state that they are to leave. */
  constructor(database: Database, left: PaymentSessionState) {
    this.#database = database;
    this.#left = left;
  }

  /**
   * @returns its state, which is the one to leave when it still has it when the signal aborts.
   * @throws TooManyRequestsError when too many wait.
   */
  async ended(id: string, signal: AbortSignal): Promise<PaymentSessionState> {
    if (this.#waiting >= MAX_WAITING) {
      throw new TooManyRequestsError('Too many sessions are waited for', undefined, {
        retryAfter: 5,
      });
    }
    this.#waiting++;
    this.#awaited.set(id, (this.#awaited.get(id) ?? 0) + 1);
    try {
      for (;;) {
        const state = (await this.#next()).get(id) ?? this.#left;
        if (state !== this.#left || signal.aborted) return state;
        await delay(LOOK_MS, undefined, { signal }).catch(() => undefined);
      }
    } finally {
      this.#waiting--;
      const others = (this.#awaited.get(id) ?? 1) - 1;
      if (others > 0) this.#awaited.set(id, others);
      else this.#awaited.delete(id);
    }
  }

  /** The look that is under way, or a new one at all that is awaited now. */
  #next(): Promise<ReadonlyMap<string, PaymentSessionState>> {
    this.#look ??= this.#statesOf([...this.#awaited.keys()]).finally(() => {
      this.#look = undefined;
    });
    return this.#look;
  }

  async #statesOf(ids: readonly string[]): Promise<ReadonlyMap<string, PaymentSessionState>> {
    const rows = await this.#database
      .asPlatform()
      .query<{ id: string; state: PaymentSessionState }>(
        'SELECT id, state FROM payment_sessions WHERE id = ANY ($ids)',
        { ids },
      );
    return new Map(rows.map(({ id, state }) => [id, state]));
  }
}
