import type { Logger } from 'pino';
import type { Database } from '../../platform/database/database.js';

/** What is written down of a last use is this old at most before the next one is. */
const NOTED_EVERY_MS = 60_000;

/** Writes under way at one time. A use that finds no place is noted with the next one. */
const MAX_AT_ONCE = 2;

/** Other processes note as well: of all of them one writes. */
const noting = (table: string, column: string, also = '') => `
  UPDATE ${table} SET ${column} = now()${also}
  WHERE id = $id AND (${column} IS NULL
    OR ${column} <= now() - make_interval(secs => ${NOTED_EVERY_MS / 1_000}))`;

const NOTE = {
  'API key': noting('api_keys', 'last_used', ', key_prefix = coalesce(key_prefix, $prefix)'),
  session: noting('sessions', 'last_seen_at'),
};

/** What is used, whose it is, and when that was last written down. */
export interface LastUse {
  readonly id: string;
  readonly userId: string;
  readonly lastUsed: Date | null;
}

/** Writes down when keys or sessions were last used, to the minute, and lets nobody wait for it. */
export class LastUses {
  readonly #underWay = new Set<string>();

  readonly #database: Database;
  readonly #log: Logger;
  readonly #of: keyof typeof NOTE;

  constructor(of: keyof typeof NOTE, database: Database, log: Logger) {
    this.#of = of;
    this.#database = database;
    this.#log = log;
  }

  /**
   * Notes that it is used now. Returns at once and never fails: a failure is logged.
   *
   * @param values what the statement of its kind asks for beside the id.
   */
  note({ id, userId, lastUsed }: LastUse, values: Readonly<Record<string, string>> = {}): void {
    if (lastUsed !== null && Date.now() - lastUsed.getTime() < NOTED_EVERY_MS) return;
    if (this.#underWay.has(id) || this.#underWay.size >= MAX_AT_ONCE) return;
    this.#underWay.add(id);
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
      this.#log.warn({ err: error, id }, `the use of a ${this.#of} was not noted`);
    } finally {
      this.#underWay.delete(id);
    }
  }
}
