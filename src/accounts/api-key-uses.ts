import type { Logger } from 'pino';
import type { Database } from '../database/database.js';
import type { ApiKeyHolder } from './api-key-lookup.js';

/** `last_used` of a key is this old at most before its next use is written down. */
const NOTED_EVERY_MS = 60_000;

/** Writes under way at one time. A use that finds no place is noted with the key's next one. */
const MAX_AT_ONCE = 2;

/** Other processes note as well: of all of them one writes. */
const NOTE = `
  UPDATE api_keys SET last_used = now()
  WHERE id = $keyId AND (last_used IS NULL
    OR last_used <= now() - make_interval(secs => ${NOTED_EVERY_MS / 1_000}))`;

/** Writes down when keys were last used, to the minute, and lets nobody wait for it. */
export class ApiKeyUses {
  readonly #underWay = new Set<string>();

  readonly #database: Database;
  readonly #log: Logger;

  constructor(database: Database, log: Logger) {
    this.#database = database;
    this.#log = log;
  }

  /** Notes that a key is used now. Returns at once and never fails: a failure is logged. */
  note({ keyId, userId, lastUsed }: ApiKeyHolder): void {
    if (lastUsed !== null && Date.now() - lastUsed.getTime() < NOTED_EVERY_MS) return;
    if (this.#underWay.has(keyId) || this.#underWay.size >= MAX_AT_ONCE) return;
    this.#underWay.add(keyId);
    void this.#write(keyId, userId);
  }

  async #write(keyId: string, userId: string): Promise<void> {
    try {
      await this.#database.asUser(userId).query(NOTE, { keyId });
    } catch (error) {
      this.#log.warn({ err: error, keyId }, "an API key's use was not noted");
    } finally {
      this.#underWay.delete(keyId);
    }
  }
}
