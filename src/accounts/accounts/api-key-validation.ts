import bcrypt from 'bcrypt';
import type { Logger } from 'pino';
import type { Database } from '../../platform/database/database.js';
import { Batcher } from '../../lib/batcher.js';
import { setBounded } from '../../lib/bounded-map.js';
import { tokenHash } from '../../platform/secrets/token-hash.js';
import type { AdminRules } from './admin.js';
import { recordKeyUse, type ApiKeyHolder, type FoundKey } from './api-key-lookup.js';
import { prefixOf } from './api-keys.js';
import { keyHashing } from './hashing-limiters.js';
import { LastUses } from './last-uses.js';

/** The form of every key, at most 72 bytes long, because bcrypt ignores the rest. */
const KEY_FORM = /^sk_[\w-]{1,69}$/;

/** Maximum number of cached matches: some 2 MB. */
const MAX_REMEMBERED = 10_000;

/** Maximum number of keys per round trip. */
const MAX_BATCH = 200;

const FIND = {
  name: 'find_keys_by_prefix',
  text: `SELECT shown.place::int, found.*
           FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS shown (beginning, whole, place)
          CROSS JOIN LATERAL find_keys_by_prefix(shown.beginning, shown.whole) AS found`,
};

/** A presented key, as it is looked up. */
interface Shown {
  readonly beginning: string;
  readonly hash: string;
}

interface Candidate extends FoundKey {
  /** Position of the presented key in its batch, from 1. */
  readonly place: number;
  readonly key_hash: string;
}

/**
 * Validates an API key and finds its owner (spec 4.5): looks the key up by its first ten characters and
 * compares by bcrypt. Caches matches by their hashes, so that bcrypt runs once per key and process; the
 * key's existence is checked every time.
 */
export class ApiKeyValidator {
  readonly #database: Database;
  readonly #lookups: Batcher<Shown, Candidate[]>;
  readonly #rules: AdminRules;
  readonly #uses: LastUses;
  /** Bcrypt hashes of matched keys, by the key's SHA-256. */
  readonly #matched = new Map<string, string>();

  constructor(database: Database, rules: AdminRules, log: Logger) {
    this.#database = database;
    this.#lookups = new Batcher((shown) => this.#findAll(shown), MAX_BATCH);
    this.#rules = rules;
    this.#uses = new LastUses('API key', database, log);
  }

  /**
   * Finds the valid key and its owner; undefined when no such key exists.
   * @param site client network under which a comparison is queued.
   * @throws TooManyRequestsError when the hashing queue is full.
   */
  async find(key: string, site: string): Promise<ApiKeyHolder | undefined> {
    if (!KEY_FORM.test(key)) return undefined;
    const hash = tokenHash(key);
    const found = await this.#lookups.add({ beginning: prefixOf(key), hash });
    for (const candidate of found) {
      if (!(await this.#matches(key, hash, candidate.key_hash, site))) continue;
      return recordKeyUse(candidate, { token: key, uses: this.#uses, rules: this.#rules });
    }
    return undefined;
  }

  /** Finds the candidates of concurrently presented keys in one round trip. */
  async #findAll(shown: readonly Shown[]): Promise<Candidate[][]> {
    const found = await this.#database.call<Candidate>(FIND, [
      shown.map(({ beginning }) => beginning),
      shown.map(({ hash }) => hash),
    ]);
    const candidates = shown.map((): Candidate[] => []);
    for (const candidate of found) candidates[candidate.place - 1]?.push(candidate);
    return candidates;
  }

  async #matches(key: string, hash: string, keyHash: string, site: string): Promise<boolean> {
    if (this.#matched.get(hash) === keyHash) return true;
    if (!(await keyHashing.run({ owner: site }, () => bcrypt.compare(key, keyHash)))) return false;
    setBounded(this.#matched, hash, keyHash, MAX_REMEMBERED);
    return true;
  }
}
