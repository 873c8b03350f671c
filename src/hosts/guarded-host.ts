import type { Database } from '../database/database.js';

/** Milliseconds for which an answer counts. */
const FRESH_MS = 5_000;

/**
 * Whether the agents of one host are known to be kept from its own addresses, as its worker has said.
 * Not known is no.
 */
export class GuardedHost {
  readonly #database: Database;
  readonly #host: string;
  #asked: { readonly at: number; readonly answer: Promise<boolean> } | undefined;

  constructor(database: Database, host: string) {
    this.#database = database;
    this.#host = host;
  }

  isGuarded(): Promise<boolean> {
    if (!this.#asked || performance.now() - this.#asked.at > FRESH_MS) {
      this.#asked = { at: performance.now(), answer: this.#ask().catch(() => false) };
    }
    return this.#asked.answer;
  }

  async #ask(): Promise<boolean> {
    const sql = `SELECT egress FROM hosts WHERE id = $id`;
    const rows = await this.#database
      .asPlatform()
      .query<{ egress: string }>(sql, { id: this.#host });
    return rows[0]?.egress === 'guarded';
  }
}
