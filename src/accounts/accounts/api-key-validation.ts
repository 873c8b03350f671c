import bcrypt from 'bcrypt';
import type { Logger } from 'pino';
import type { Database } from '../../platform/database/database.js';
import { tokenHash } from '../../platform/secrets/token-hash.js';
import type { AdminRules } from './admin.js';
import { usedBy, type ApiKeyHolder, type FoundKey } from './api-key-lookup.js';
import { prefixOf } from './api-keys.js';
import { keyHashing } from './hashing-queue.js';
import { LastUses } from './last-uses.js';

/** What can be a key at all; bcrypt reads 72 bytes and no more. */
const KEY_FORM = /^sk_[\w-]{1,69}$/;

/** Keys that are remembered to have matched: some 2 MB. */
const MAX_REMEMBERED = 10_000;

const FIND = { name: 'find_keys_beginning', text: 'SELECT * FROM find_keys_beginning($1, $2)' };

interface Candidate extends FoundKey {
  readonly key_hash: string;
}

/**
 * Tells whose a key is that somebody was shown (spec 4.5): found by its first ten characters, and
 * compared by bcrypt. That a key matched is remembered by its hashes, so that bcrypt's work is done once
 * for a key in a process; whether it is there is asked each time.
 */
export class ApiKeyValidator {
  readonly #database: Database;
  readonly #rules: AdminRules;
  readonly #uses: LastUses;
  /** Of keys that have matched: by SHA-256, which bcrypt hash. */
  readonly #matched = new Map<string, string>();

  constructor(database: Database, rules: AdminRules, log: Logger) {
    this.#database = database;
    this.#rules = rules;
    this.#uses = new LastUses('API key', database, log);
  }

  /**
   * The living key that this is, and its owner; none when there is none.
   *
   * @param site whose turn a comparison takes.
   * @throws TooManyRequestsError when too many wait for theirs.
   */
  async find(key: string, site: string): Promise<ApiKeyHolder | undefined> {
    if (!KEY_FORM.test(key)) return undefined;
    const hash = tokenHash(key);
    const found = await this.#database.call<Candidate>(FIND, [prefixOf(key), hash]);
    for (const candidate of found) {
      if (!(await this.#matches(key, hash, candidate.key_hash, site))) continue;
      return usedBy(candidate, { token: key, uses: this.#uses, rules: this.#rules });
    }
    return undefined;
  }

  async #matches(key: string, hash: string, keyHash: string, site: string): Promise<boolean> {
    if (this.#matched.get(hash) === keyHash) return true;
    if (!(await keyHashing.run(site, () => bcrypt.compare(key, keyHash)))) return false;
    const [oldest] = this.#matched.keys();
    if (oldest !== undefined && this.#matched.size >= MAX_REMEMBERED) this.#matched.delete(oldest);
    this.#matched.set(hash, keyHash);
    return true;
  }
}
