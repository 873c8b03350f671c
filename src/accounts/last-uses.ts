import type { Logger } from 'pino';
import type { Database } from '../database/database.js';

/** What is written down of a last use is this old at most before the next one is. */
const NOTED_EVERY_MS = 60_000;

/** Writes under way at one time. A use that finds no place is noted with the next one. */
const MAX_AT_ONCE = 2;

/** Other processes note as well: of all of them one writes. */
const noting = (table: string, column: string) => `
  UPDATE ${table} SET ${column} = now()
  WHERE id = $id AND (${column} IS NULL
    OR ${column} <= now() - make_interval(secs => ${NOTED_EVERY_MS / 1_000}))`;

const NOTE = {
  'API key': noting('api_keys', 'last_used'),
  session: noting('sessions', 'last_seen_at'),
};

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

  /** Notes that it is used now. Returns at once and never fails: a failure is logged. */
  note(id: string, userId: string, lastUsed: Date | null): void {
    if (lastUsed !== null && Date.now() - lastUsed.getTime() < NOTED_EVERY_MS) return;
    if (this.#underWay.has(id) || this.#underWay.size >= MAX_AT_ONCE) return;
    this.#underWay.add(id);
    void this.#write(id, userId);
  }

  async #write(id: string, userId: string): Promise<void> {
    try {
      await this.#database.asUser(userId).query(NOTE[this.#of], { id });
    } catch (error) {
      this.#log.warn({ err: error, id }, `the use of a ${this.#of} was not noted`);
    } finally {
      this.#underWay.delete(id);
    }
  }
}
