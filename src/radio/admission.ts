import { timingSafeEqual } from 'node:crypto';
import type { Logger } from 'pino';
import type { Hex } from 'viem';
import { checkLinkedWallets, linkedWalletsSql } from '../accounts/token-gating/check-gate.js';
import type { TokenGate } from '../accounts/token-gating/token-gate.js';
import { setBounded } from '../lib/bounded-map.js';
import type { Database } from '../platform/database/database.js';
import type { LiveSources } from './live-sources.js';
import { mountOf, readMount, type Mount } from './mounts.js';
import { MAX_LIVE_STREAMS, passwordHash } from './streams.js';

/** Milliseconds for an answer: listeners wait behind it, two seconds at most with the time of Icecast itself. */
const ANSWER_MS = 1_300;

/** Milliseconds for which everything is refused after a request that could not be answered in time. */
const CLOSED_MS = 5_000;

/**
 * Milliseconds for which a hash is kept, so that many wrong passwords cost one read of the database. No longer, since
 * a repeated creation of a stream makes a new password, which other processes do not notice.
 */
const HASH_KEPT_MS = 1_000;
const MAX_HASHES = 10_000;

/** Milliseconds after which Icecast's list, which is kept for a second, has an admitted source. */
const LISTED_MS = 2_000;

/** The user name of all sources. */
const SOURCE_USER = 'source';

/** A source's request, as Icecast passes it on. */
export interface AdmissionRequest {
  readonly mount: string;
  readonly user: string;
  readonly password: string;
  /** True for a new title of a source that is connected. */
  readonly isTitle: boolean;
}

interface CachedHash {
  /** Undefined for a mount without a stream. */
  readonly hash: string | undefined;
  readonly until: number;
}

interface Owner {
  readonly userId: string;
  readonly hash: string;
  /** The linked wallets, in lower case. */
  readonly wallets: readonly Hex[];
  /** Mounts of the owner's other streams. */
  readonly others: readonly string[];
}

interface Parts {
  readonly database: Database;
  readonly gate: TokenGate;
  /** The sources that are connected now; undefined without a radio, which admits nothing. */
  readonly sources: Pick<LiveSources, 'all'> | undefined;
  readonly log: Logger;
  readonly now?: () => number;
}

/** Decides which sources Icecast admits. Every request is answered within two seconds. */
export class RadioAdmission {
  readonly #parts: Parts;
  readonly #now: () => number;
  readonly #hashes = new Map<string, CachedHash>();
  /** Times of admissions by mount. */
  readonly #admitted = new Map<string, number>();
  #closedUntil = -Infinity;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#now = parts.now ?? (() => performance.now());
  }

  /** Reports whether a source is admitted; never throws. */
  async admits({ isTitle, mount: path, password, user }: AdmissionRequest): Promise<boolean> {
    const mount = readMount(path);
    // Many clients send a request without credentials first.
    if (mount === undefined || user !== SOURCE_USER || password === '') return false;
    if (this.#now() < this.#closedUntil) return false;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(() => resolve('late'), ANSWER_MS);
    });
    try {
      const checked = this.#checks(mount, passwordHash(password), isTitle);
      const outcome = await Promise.race([checked, late]);
      if (outcome !== 'late') return outcome;
      this.#closedUntil = this.#now() + CLOSED_MS;
      checked.catch(() => undefined); // its failure no longer matters
      this.#parts.log.warn('a source was refused: database or chain did not answer in time');
    } catch (error) {
      this.#parts.log.warn({ err: error }, 'a source was refused: it could not be checked');
    } finally {
      clearTimeout(timer);
    }
    return false;
  }

  async #checks(mount: Mount, presented: string, isTitle: boolean): Promise<boolean> {
    const kept = await this.#hashOf(mount);
    if (kept === undefined || !isSame(kept, presented)) return false;
    // Since the hash was read, the stream may have been removed.
    const owner = await this.#ownerOf(mount);
    if (!owner || !isSame(owner.hash, presented)) return false;
    if (isTitle) return true;
    const { others, userId, wallets } = owner;
    if (!(await this.#hasPlace(others))) return false;
    if (!(await checkLinkedWallets(this.#parts.gate, wallets, userId)).verified) return false;
    setBounded(this.#admitted, mountOf(mount), this.#now(), MAX_HASHES);
    return true;
  }

  /**
   * Reports whether one more stream of an owner may be live. Icecast sends one request at a time, but several
   * processes answer: the worker ends excess sources.
   */
  async #hasPlace(others: readonly string[]): Promise<boolean> {
    const listed = await this.#parts.sources?.all();
    if (!listed) return false;
    const since = this.#now() - LISTED_MS;
    const live = others.filter(
      (mount) => listed.has(mount) || (this.#admitted.get(mount) ?? -Infinity) > since,
    );
    return live.length < MAX_LIVE_STREAMS;
  }

  async #hashOf(mount: Mount): Promise<string | undefined> {
    const key = `${mount.id}.${mount.format}`;
    const known = this.#hashes.get(key);
    if (known && this.#now() < known.until) return known.hash;
    const hash = (await this.#ownerOf(mount))?.hash;
    setBounded(this.#hashes, key, { hash, until: this.#now() + HASH_KEPT_MS }, MAX_HASHES);
    return hash;
  }

  async #ownerOf({ format, id }: Mount): Promise<Owner | undefined> {
    const [owner] = await this.#parts.database.asPlatform().query<Owner>(
      `SELECT s.user_id AS "userId", s.password_hash AS hash,
              ARRAY(${linkedWalletsSql('s.user_id')}) AS wallets,
              ARRAY(SELECT '/' || o.id || '.' || o.format FROM radio_streams o
                     WHERE o.user_id = s.user_id AND o.id <> s.id) AS others
         FROM radio_streams s WHERE s.id = $id AND s.format = $format`,
      { id, format },
    );
    return owner;
  }
}

/** Compares two hashes in constant time. */
const isSame = (a: string, b: string): boolean =>
  a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
