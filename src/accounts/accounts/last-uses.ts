import type { Logger } from 'pino';
import type { Database } from '../../platform/database/database.js';

/** Minimum milliseconds between two stored uses. */
const NOTED_EVERY_MS = 60_000;

/** Maximum writes in flight. A use beyond that is stored with the next use. */
const MAX_AT_ONCE = 2;

/** Returns the update statement; its time condition lets only one of several processes write. */
const noting = (table: string, column: string, also = '') => `
  UPDATE ${table} SET ${column} = now()${also}
  WHERE id = $id AND (${column} IS NULL
    OR ${column} <= now() - make_interval(secs => ${NOTED_EVERY_MS / 1_000}))`;

const NOTE = {
  'API key': noting('api_keys', 'last_used', ', key_prefix = coalesce(key_prefix, $prefix)'),
  session: noting('sessions', 'last_seen_at'),
};

export interface LastUse {
  readonly id: string;
  readonly userId: string;
  readonly lastUsed: Date | null;
}

/** Stores when keys or sessions were last used, to the minute, without delaying the caller. */
export class LastUses {
  readonly #inFlight = new Set<string>();

  readonly #database: Database;
  readonly #log: Logger;
  readonly #of: keyof typeof NOTE;

  constructor(of: keyof typeof NOTE, database: Database, log: Logger) {
    this.#of = of;
    this.#database = database;
    this.#log = log;
  }

  /** Records a use now, with `values` for the statement. Returns immediately; a failure is only logged. */
  record({ id, userId, lastUsed }: LastUse, values: Readonly<Record<string, string>> = {}): void {
    if (lastUsed !== null && Date.now() - lastUsed.getTime() < NOTED_EVERY_MS) return;
    if (this.#inFlight.has(id) || this.#inFlight.size >= MAX_AT_ONCE) return;
    this.#inFlight.add(id);
    void this.#write(id, userId, values);
  }

  async #write(
    id: string,
    userId: string,
    values: Readonly<Record<string, string>>,
  ): Promise<void> {
    try {
      await this.#database.asUser(userId).query(NOTE[this.#of], { ...values, id });
    } catch (error) {
      this.#log.warn({ err: error, id }, `storing the last use of a ${this.#of} failed`);
    } finally {
      this.#inFlight.delete(id);
    }
  }
}
