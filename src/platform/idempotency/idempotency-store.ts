import type { Database, Statements, TenantDatabase } from '../database/database.js';
import { ConflictError, UnprocessableError } from '../../lib/errors.js';
import type { SecretBox } from '../secrets/secret-box.js';

/** The identity of a request, for recognizing a retry. */
export interface RequestIdentity {
  readonly caller: string;
  readonly route: string;
  readonly key: string;
  /** The hash that distinguishes a retry from a different request with the same key. */
  readonly requestHash: string;
}

export interface StoredResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** The text as sent. */
  readonly body: string | undefined;
}

/** Seconds after which a running request counts as dead with its process, and hours that an answer is kept. */
const LOCK_SECONDS = 60;
export const KEEP_HOURS = 24;

/** Bounds of kept answers, in bytes. Beyond a bound the oldest answers are removed, and their keys stay. */
export interface AnswerBounds {
  /** For one user, or another owner of keys. */
  readonly perOwner: number;
  /** Limit over all owners; beyond it, the owners with the most bytes lose entries first. */
  readonly total: number;
  /** Bytes that a store keeps between two checks of the total. */
  readonly checkEvery: number;
}

const MIB = 1024 * 1024;

const BOUNDS: AnswerBounds = { perOwner: 16 * MIB, total: 4_096 * MIB, checkEvery: MIB };

/** Maximum number of statements of a hundred owners each; the next check continues. */
const MAX_DROPS = 20;

// A key is free when it is new, older than KEEP_HOURS, or left `running` by a dead process.
const CLAIM = `
  INSERT INTO idempotency_keys AS held
    (caller, route, key, request_hash, state, locked_until, created_at)
  VALUES ($caller, $route, $key, $requestHash, 'running', now() + make_interval(secs => ${LOCK_SECONDS}), now())
  ON CONFLICT (caller, route, key) DO UPDATE SET
    request_hash = excluded.request_hash, state = 'running', status = NULL, body = NULL,
    headers = NULL, bytes = 0, locked_until = excluded.locked_until, created_at = excluded.created_at
  WHERE (held.state <> 'running' OR held.locked_until < now())
    AND (held.created_at < now() - make_interval(hours => ${KEEP_HOURS})
      OR (held.state = 'running' AND held.request_hash = ANY ($hashes::text[])))
  RETURNING locked_until::text AS lock`;

const READ = `
  SELECT request_hash, state, status, body, headers,
    greatest(1, ceil(extract(epoch FROM locked_until - now())))::int AS wait
  FROM idempotency_keys WHERE caller = $caller AND route = $route AND key = $key`;

const OF_KEY = 'caller = $caller AND route = $route AND key = $key';

// The lock's end identifies this run; a later run that took over the key has another end. A run may keep its
// answer twice: one that received no confirmation retries.
const KEEP = `
  SELECT keep_answer($caller, $route, $key, $lock::timestamptz, $again, $status, $body::jsonb,
                     $headers::jsonb, $bytes, $most) AS kept`;

// Frees the key for the same request only, because the failed run may have done its work.
const RELEASE = `
  UPDATE idempotency_keys SET locked_until = now()
   WHERE ${OF_KEY} AND locked_until = $lock::timestamptz AND state = 'running'`;

// Any run may mark: the stream of an answer ends after its request.
const MARK = `
  UPDATE idempotency_keys SET state = 'found'
   WHERE ${OF_KEY} AND request_hash = ANY ($hashes::text[]) AND state = 'running'`;

const DROP_MOST = 'SELECT drop_most_kept($total) AS dropped';

/** Ways to end with an answer before the request ends. */
export interface EarlyStore {
  /** Stores the answer in the work's transaction; on false, another run has the key: roll back. */
  readonly keep: (db: Statements, answer: StoredResponse) => Promise<boolean>;
  /** Records that another table has the answer, which is then not stored here. */
  readonly markFound: () => Promise<void>;
}

/** The outcome of a request's work, or of its first run. */
export type Outcome<A> =
  | { readonly kind: 'answer'; readonly answer: A }
  | { readonly kind: 'kept'; readonly kept: StoredResponse }
  /** Another table has the answer. */
  | { readonly kind: 'found' };

interface StoredRow {
  readonly request_hash: string;
  readonly state: 'running' | 'done' | 'found' | 'dropped';
  readonly status: number | null;
  /** The sealed body as a JSON string. */
  readonly body: string | null;
  readonly headers: StoredResponse['headers'] | null;
  readonly wait: number;
}

/**
 * A store of first answers in the table `idempotency_keys`, whose primary key decides which request is
 * first. Requests and answers may hold secrets: bodies are sealed and requests are identified by a keyed
 * digest. Headers are stored unencrypted.
 */
export class IdempotencyStore {
  readonly #platform: TenantDatabase;
  readonly #secrets: SecretBox;
  readonly #bounds: AnswerBounds;
  #unchecked = 0;

  constructor(database: Database, secrets: SecretBox, bounds: Partial<AnswerBounds> = {}) {
    this.#platform = database.asPlatform();
    this.#secrets = secrets;
    this.#bounds = { ...BOUNDS, ...bounds };
  }

  /**
   * Runs a request's work, or returns the outcome of its first run. If `keep` returns undefined, nothing
   * is stored, and a retry runs the work again. @throws UnprocessableError if the key was used with a different
   * request, StillRunningError while the first request has no answer yet, AnswerDroppedError.
   */
  async once<A>(
    identity: RequestIdentity,
    work: (early: EarlyStore) => Promise<A>,
    keep: (answer: A) => StoredResponse | undefined,
  ): Promise<Outcome<A>> {
    const { caller, route, key } = identity;
    const secrets = this.#secrets;
    const context = answerContext(identity);
    // A keyed digest, because a short secret in the request could be guessed from a plain hash.
    const hashes = secrets.digests(identity.requestHash, context);
    const [requestHash] = hashes;
    const named = { caller, route, key };
    const [claim] = await this.#platform.query<{ lock: string }>(CLAIM, {
      ...named,
      requestHash,
      hashes,
    });
    if (claim === undefined) {
      const [stored] = await this.#platform.query<StoredRow>(READ, named);
      return outcomeIn(stored, hashes, (body) => secrets.open(body, context));
    }
    const owned = { ...named, lock: claim.lock };
    let isFound = false;
    const answer = await work({
      keep: async (db, early) => {
        const values = this.#valuesOf(early, context);
        const [row] = await db.query<{ kept: boolean }>(KEEP, { ...owned, ...values, again: true });
        return row?.kept ?? false;
      },
      markFound: async () => {
        await this.#platform.query(MARK, { ...named, hashes });
        isFound = true;
      },
    });
    if (isFound) return { kind: 'answer', answer };
    const kept = keep(answer);
    if (kept === undefined) await this.#platform.query(RELEASE, owned);
    else {
      const values = this.#valuesOf(kept, context);
      await this.#platform.query(KEEP, { ...owned, ...values, again: false });
      await this.#keepTotal(values.bytes);
    }
    return { kind: 'answer', answer };
  }

  #valuesOf({ body, headers, status }: StoredResponse, context: string) {
    const stored = {
      body: body === undefined ? null : JSON.stringify(this.#secrets.seal(body, context)),
      headers: JSON.stringify(headers),
    };
    const bytes = Buffer.byteLength(stored.body ?? '') + Buffer.byteLength(stored.headers);
    return { ...stored, status, bytes, most: this.#bounds.perOwner };
  }

  /** Drops answers beyond the bound of all owners. */
  async #keepTotal(bytes: number): Promise<void> {
    this.#unchecked += bytes;
    if (this.#unchecked < this.#bounds.checkEvery) return;
    this.#unchecked = 0;
    const { total } = this.#bounds;
    for (let n = 0; n < MAX_DROPS; n++) {
      const [row] = await this.#platform.query<{ dropped: string }>(DROP_MOST, { total });
      if (row === undefined || row.dropped === '0') return;
    }
  }
}

/** Binds an answer to its request, so that a swapped answer cannot be decrypted. */
export function answerContext({
  caller,
  route,
  key,
}: Pick<RequestIdentity, 'caller' | 'route' | 'key'>): string {
  return `idempotency/${JSON.stringify([caller, route, key])}`;
}

/** 409: the first request with this key has no answer yet. */
export class StillRunningError extends ConflictError {
  override readonly name = 'StillRunningError';

  /** @param retryAfter seconds until the key is free at the latest. */
  constructor(readonly retryAfter = 1) {
    super('A request with this Idempotency-Key is still running: retry later', 'REQUEST_IN_FLIGHT');
  }
}

/** 409: the request was carried out, and its answer was dropped for newer ones. */
export class AnswerDroppedError extends ConflictError {
  override readonly name = 'AnswerDroppedError';

  constructor() {
    super(
      'The answer to this Idempotency-Key is no longer kept. The request was carried out and does not run again: read its result, or use a new key for a new request',
      'ANSWER_NOT_KEPT',
    );
  }
}

/** Returns a row's outcome; a row that was just removed counts as running. `hashes` has a digest for each key. */
function outcomeIn(
  stored: StoredRow | undefined,
  hashes: readonly string[],
  open: (body: string) => string,
): Outcome<never> {
  if (stored !== undefined && !hashes.includes(stored.request_hash)) {
    throw new UnprocessableError(
      'Idempotency-Key was used with a different request: use a new key',
    );
  }
  if (stored?.state === 'found') return { kind: 'found' };
  if (stored?.state === 'dropped') throw new AnswerDroppedError();
  if (stored?.state !== 'done' || stored.status === null) throw new StillRunningError(stored?.wait);
  const { body, headers, status } = stored;
  return {
    kind: 'kept',
    kept: { status, headers: headers ?? {}, body: body === null ? undefined : open(body) },
  };
}
