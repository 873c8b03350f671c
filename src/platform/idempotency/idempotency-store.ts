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
const KEEP_HOURS = 24;
/** Old rows are removed as requests end, so the table stays bounded without a cleanup job. */
const PURGED_AT_ONCE = 10;

// A key is free when it is new, older than KEEP_HOURS, or left `running` by a dead process.
const CLAIM = `
  INSERT INTO idempotency_keys AS held
    (caller, route, key, request_hash, state, locked_until, created_at)
  VALUES ($caller, $route, $key, $requestHash, 'running', now() + make_interval(secs => ${LOCK_SECONDS}), now())
  ON CONFLICT (caller, route, key) DO UPDATE SET
    request_hash = excluded.request_hash, state = 'running', status = NULL, body = NULL,
    headers = NULL, locked_until = excluded.locked_until, created_at = excluded.created_at
  WHERE (held.state = 'done' OR held.locked_until < now())
    AND (held.created_at < now() - make_interval(hours => ${KEEP_HOURS})
      OR (held.state = 'running' AND held.request_hash = ANY ($hashes::text[])))
  RETURNING locked_until::text AS lock`;

const READ = `
  SELECT request_hash, state, status, body, headers,
    greatest(1, ceil(extract(epoch FROM locked_until - now())))::int AS wait
  FROM idempotency_keys WHERE caller = $caller AND route = $route AND key = $key`;

// The lock's end identifies this run; a later run that took over the key has another end.
const OF_RUN = `caller = $caller AND route = $route AND key = $key
  AND locked_until = $lock::timestamptz`;
const OWNED = `${OF_RUN} AND state = 'running'`;
const DONE = `SET state = 'done', status = $status, body = $body::jsonb, headers = $headers::jsonb`;

const PURGE = `
  WITH purged AS (
    DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM idempotency_keys
      WHERE created_at < now() - make_interval(hours => ${KEEP_HOURS})
      ORDER BY created_at LIMIT ${PURGED_AT_ONCE} FOR UPDATE SKIP LOCKED)))`;

const FINISH = `${PURGE} UPDATE idempotency_keys ${DONE} WHERE ${OWNED}`;

// Overwrites this run's own answer too: a run that received no confirmation retries.
const KEEP = `UPDATE idempotency_keys ${DONE} WHERE ${OF_RUN} RETURNING true AS kept`;

// Frees the key for the same request only, because the failed run may have done its work.
const RELEASE = `${PURGE} UPDATE idempotency_keys SET locked_until = now() WHERE ${OWNED}`;

/** A store for answers before their requests end. */
export interface EarlyStore {
  /** Stores the answer in the work's transaction; on false, another run has the key: roll back. */
  readonly keep: (db: Statements, answer: StoredResponse) => Promise<boolean>;
}

interface StoredRow {
  readonly request_hash: string;
  readonly state: 'running' | 'done';
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

  constructor(database: Database, secrets: SecretBox) {
    this.#platform = database.asPlatform();
    this.#secrets = secrets;
  }

  /**
   * Runs a request's work, or returns the stored answer of its first run. If `keep` returns undefined, nothing
   * is stored, and a retry runs the work again. @throws UnprocessableError if the key was used with a different
   * request, StillRunningError while the first request has no answer yet.
   */
  async once<A>(
    identity: RequestIdentity,
    work: (keeper: EarlyStore) => Promise<A>,
    keep: (answer: A) => StoredResponse | undefined,
  ): Promise<{ readonly answer: A } | { readonly kept: StoredResponse }> {
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
      return { kept: keptIn(stored, hashes, (body) => secrets.open(body, context)) };
    }
    const owned = { ...named, lock: claim.lock };
    const valuesOf = ({ body, headers, status }: StoredResponse) => ({
      ...owned,
      status,
      body: body === undefined ? null : JSON.stringify(secrets.seal(body, context)),
      headers: JSON.stringify(headers),
    });
    const answer = await work({
      keep: async (db, early) => (await db.query(KEEP, valuesOf(early))).length > 0,
    });
    const kept = keep(answer);
    if (kept === undefined) await this.#platform.query(RELEASE, owned);
    else await this.#platform.query(FINISH, valuesOf(kept));
    return { answer };
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
    super('A request with this Idempotency-Key is still running: retry later');
  }
}

/** Returns a row's stored answer, undefined if just purged; `hashes` has a digest for each key. */
function keptIn(
  stored: StoredRow | undefined,
  hashes: readonly string[],
  open: (body: string) => string,
): StoredResponse {
  if (stored !== undefined && !hashes.includes(stored.request_hash)) {
    throw new UnprocessableError(
      'Idempotency-Key was used with a different request: use a new key',
    );
  }
  if (stored?.state !== 'done' || stored.status === null) throw new StillRunningError(stored?.wait);
  return {
    status: stored.status,
    headers: stored.headers ?? {},
    body: stored.body === null ? undefined : open(stored.body),
  };
}
