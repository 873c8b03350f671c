import type { Database } from '../database/database.js';
import type { PaymentSessionRow } from '../database/models.js';
import { RowWatch } from '../database/row-watch.js';
import { selectFrom } from '../database/table.js';
import { paymentSessions } from '../database/tables/payment-sessions.js';
import type { PaymentSessionState } from './states.js';

/** Requests of one process that wait at a time: each holds a connection of its client. */
const MAX_WAITING = 500;

/** Waits for sessions to leave a state, however many. */
export class SessionWatch {
  readonly #database: Database;
  readonly #rows: RowWatch<PaymentSessionRow>;
  readonly #left: PaymentSessionState;
  #waiting = 0;

  /** @param left the state that they are to leave. */
  constructor(database: Database, left: PaymentSessionState) {
    this.#database = database;
    this.#rows = new RowWatch(database.changesOf('payment_sessions'), (ids) =>
      sessionsOf(database, ids),
    );
    this.#left = left;
  }

  /**
   * @param before what is done first, by those who may wait.
   * @returns the session, in the state to leave when it still has it when the signal aborts, or when too many
   *   wait; undefined where it is not there.
   */
  async ended(
    id: string,
    signal: AbortSignal,
    before: (id: string, signal: AbortSignal) => Promise<void>,
  ): Promise<PaymentSessionRow | undefined> {
    // What was asked for is written down: who may not wait is told how it stands.
    if (this.#waiting >= MAX_WAITING) return (await sessionsOf(this.#database, [id])).get(id);
    this.#waiting++;
    try {
      await before(id, signal);
      const hasLeft = (found: PaymentSessionRow | undefined) =>
        found !== undefined && found.state !== this.#left;
      return await this.#rows.until(id, hasLeft, signal);
    } finally {
      this.#waiting--;
    }
  }
}

async function sessionsOf(
  database: Database,
  ids: readonly string[],
): Promise<ReadonlyMap<string, PaymentSessionRow>> {
  const rows = await database
    .asPlatform()
    .query<PaymentSessionRow>(`${selectFrom(paymentSessions)} WHERE id = ANY ($ids)`, { ids });
  return new Map(rows.map((row) => [row.id, row]));
}
