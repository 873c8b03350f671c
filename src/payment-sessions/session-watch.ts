import type { Database } from '../database/database.js';
import { RowWatch } from '../database/row-watch.js';
import type { PaymentSessionState } from './states.js';

/** Requests of one process that wait at a time: each holds a connection of its client. */
const MAX_WAITING = 500;

/** Waits for sessions to leave a state, however many. */
export class SessionWatch {
  readonly #database: Database;
  readonly #rows: RowWatch<PaymentSessionState>;
  readonly #left: PaymentSessionState;
  #waiting = 0;

  /** @param left the state that they are to leave. */
  constructor(database: Database, left: PaymentSessionState) {
    this.#database = database;
    this.#rows = new RowWatch(database.changesOf('payment_sessions'), (ids) =>
      statesOf(database, ids),
    );
    this.#left = left;
  }

  /**
   * @param before what is done first, by those who may wait.
   * @returns its state, which is the one to leave when it still has it when the signal aborts, or when too many
   *   wait.
   */
  async ended(
    id: string,
    signal: AbortSignal,
    before: (id: string, signal: AbortSignal) => Promise<void>,
  ): Promise<PaymentSessionState> {
    // What was asked for is written down: who may not wait is told how it stands.
    if (this.#waiting >= MAX_WAITING) {
      return (await statesOf(this.#database, [id])).get(id) ?? this.#left;
    }
    this.#waiting++;
    try {
      await before(id, signal);
      const hasLeft = (state: PaymentSessionState | undefined) =>
        state !== undefined && state !== this.#left;
      return (await this.#rows.until(id, hasLeft, signal)) ?? this.#left;
    } finally {
      this.#waiting--;
    }
  }
}

async function statesOf(
  database: Database,
  ids: readonly string[],
): Promise<ReadonlyMap<string, PaymentSessionState>> {
  const rows = await database
    .asPlatform()
    .query<{ id: string; state: PaymentSessionState }>(
      'SELECT id, state FROM payment_sessions WHERE id = ANY ($ids)',
      { ids },
    );
  return new Map(rows.map(({ id, state }) => [id, state]));
}
