import type { Database } from '../../platform/database/database.js';
import type { PaymentSessionRow } from '../../platform/database/models.js';
import { RowWatch } from '../../platform/database/row-watch.js';
import { selectFrom } from '../../platform/database/schema/table.js';
import { paymentSessions } from '../../platform/database/tables/payment-sessions.js';
import { findById } from './session-openings.js';
import type { PaymentSessionState } from '../../types/payment-session-states.js';

/** Maximum number of waiting requests of one process: each uses a client connection. */
const MAX_WAITING = 500;

/** Waits for any number of sessions to leave a state. */
export class SessionWatch {
  readonly #database: Database;
  readonly #rows: RowWatch<PaymentSessionRow>;
  #waiting = 0;

  constructor(database: Database) {
    this.#database = database;
    this.#rows = new RowWatch(database.changesOf('payment_sessions'), (ids) =>
      sessionsOf(database, ids),
    );
  }

  /**
   * Waits until a session has left a state.
   *
   * @returns the session, still in the state to leave if the signal aborts or too many requests wait;
   *   undefined if it does not exist.
   */
  async left(
    state: PaymentSessionState,
    id: string,
    signal: AbortSignal,
  ): Promise<PaymentSessionRow | undefined> {
    // The request is already stored; without a free place it returns the current state.
    if (this.#waiting >= MAX_WAITING) return findById(this.#database, id);
    this.#waiting++;
    try {
      const hasLeft = (found: PaymentSessionRow | undefined) => found?.state !== state;
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
