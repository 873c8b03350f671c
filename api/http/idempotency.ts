import { createHash } from 'node:crypto';
import type { Database } from '../../src/database/database.js';
import { BadRequestError, ConflictError, UnprocessableError } from '../../src/errors.js';
import type { SecretBox } from '../../src/secrets/secret-box.js';
import { JSON_TYPE, type Answer } from './presenter.js';
import type { ReplyHeaders } from './reply.js';

/** Names one request that may come again. */
export interface RequestIdentity {
  readonly caller: string;
  readonly route: string;
  readonly key: string;
  /** Tells another request with the same key from a repetition. */
  readonly requestHash: string;
  /** Request or answer holds a secret: hash and body are kept encrypted. Headers are not. */
  readonly sealed: boolean;
}

/** Runs `work` once for each identity, and gives its answer to every repetition. */
export type OncePerKey = (
  identity: RequestIdentity,
  work: () => Promise<Answer>,
) => Promise<Answer>;

const MAX_KEY_LENGTH = 255;
/** A request that has run this long is taken for dead with its process. */
const LOCK_SECONDS = 60;
const KEEP_HOURS = 24;
/** Old rows are removed as new ones are stored, so the table stays bounded without a cleaner. */
const PURGED_AT_ONCE = 10;

export function readIdempotencyKey(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  const key = String(header);
  if (/^[\x21-\x7e]+$/.test(key) && key.length <= MAX_KEY_LENGTH) return key;
  throw new BadRequestError(
    `Idempotency-Key must be 1 to ${MAX_KEY_LENGTH} visible ASCII characters`,
  );
}

/** A digest of what makes two requests the same one. */
export function hashRequest(params: unknown, query: unknown, body: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify([params, query, body]))
    .digest('hex');
}

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
      OR (held.state = 'running' AND held.request_hash = excluded.request_hash))
  RETURNING locked_until::text AS lock`;

const READ = `
  SELECT request_hash, state, status, body, headers,
    greatest(1, ceil(extract(epoch FROM locked_until - now())))::int AS wait
  FROM idempotency_keys WHERE caller = $caller AND route = $route AND key = $key`;

// The lock's end tells this run from one that took the key over after it.
const OWNED = `caller = $caller AND route = $route AND key = $key AND state = 'running'
  AND locked_until = $lock::timestamptz`;

const FINISH = `
  WITH purged AS (
    DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM idempotency_keys
      WHERE created_at < now() - make_interval(hours => ${KEEP_HOURS})
      ORDER BY created_at LIMIT ${PURGED_AT_ONCE} FOR UPDATE SKIP LOCKED)))
  UPDATE idempotency_keys
  SET state = 'done', status = $status, body = $body::jsonb, headers = $headers::jsonb
  WHERE ${OWNED}`;

const RELEASE = `DELETE FROM idempotency_keys WHERE ${OWNED}`;

interface StoredRow {
  readonly request_hash: string;
  readonly state: 'running' | 'done';
  readonly status: number | null;
  /** The text as it was sent, or sealed, kept as a JSON string so that a replay is the same bytes. */
  readonly body: string | null;
  readonly headers: ReplyHeaders | null;
  readonly wait: number;
}

/**
 * Keeps first answers in the table `idempotency_keys`, whose primary key decides who is first.
 *
 * @param secrets what seals and opens what is secret; without it such requests are refused.
 */
export function idempotency(database: Database, secrets?: SecretBox): OncePerKey {
  const platform = database.asPlatform();
  return async (identity, work) => {
    const { caller, route, key } = identity;
    const named = { caller, route, key };
    const vault = identity.sealed ? vaultOf(identity, secrets) : CLEAR;
    const requestHash = vault.hash(identity.requestHash);
    const [claim] = await platform.query<{ lock: string }>(CLAIM, {
      ...named,
      requestHash,
    });
    if (claim === undefined) {
      const [stored] = await platform.query<StoredRow>(READ, named);
      return replay(stored, requestHash, vault);
    }

    const owned = { ...named, lock: claim.lock };
    const answer = await work();
    if (answer.status >= 500 || !isKept(answer)) {
      await platform.query(RELEASE, owned);
      return answer;
    }
    const body = answer.body === undefined ? null : JSON.stringify(vault.put(answer.body));
    const headers = JSON.stringify(keptHeaders(answer.headers));
    await platform.query(FINISH, { ...owned, status: answer.status, body, headers });
    return answer;
  };
}

/** How a request's hash, and the text of its answer, lie in the table. */
interface Vault {
  hash(requestHash: string): string;
  put(text: string): string;
  take(stored: string): string;
}

const CLEAR: Vault = {
  hash: (requestHash) => requestHash,
  put: (text) => text,
  take: (stored) => stored,
};

/** Sealed for this one request: the answer to another, put in its place, does not open. */
function vaultOf({ caller, route, key }: RequestIdentity, secrets: SecretBox | undefined): Vault {
  if (secrets === undefined) throw new TypeError('a listener with sealed answers needs secrets');
  const context = `idempotency/${JSON.stringify([caller, route, key])}`;
  return {
    // A short secret could be guessed from a plain hash of all that surrounds it.
    hash: (requestHash) => secrets.digest(requestHash, context),
    put: (text) => secrets.seal(text, context),
    take: (stored) => secrets.open(stored, context),
  };
}

/** @param stored undefined when the first request failed and gave the key back just now. */
function replay(stored: StoredRow | undefined, requestHash: string, vault: Vault): Answer {
  if (stored !== undefined && stored.request_hash !== requestHash) {
    throw new UnprocessableError('Idempotency-Key was used with a different request');
  }
  if (stored?.state !== 'done' || stored.status === null) throw new StillRunningError(stored?.wait);
  return {
    status: stored.status,
    headers: { ...stored.headers, 'Idempotent-Replayed': 'true' },
    contentType: stored.body === null ? undefined : JSON_TYPE,
    body: stored.body === null ? undefined : vault.take(stored.body),
  };
}

/** 409: the first request with this key has no answer yet. */
export class StillRunningError extends ConflictError {
  /** @param retryAfter seconds after which its key is free at the latest. */
  constructor(readonly retryAfter = 1) {
    super('A request with this Idempotency-Key is still running');
  }
}

/** Only what a table of texts can give again as it was. */
function isKept(answer: Answer): answer is Answer & { readonly body: string | undefined } {
  const { body, contentType } = answer;
  return body === undefined || (typeof body === 'string' && contentType === JSON_TYPE);
}

/** A cookie belongs to the browser that got it, and is not handed out a second time. */
function keptHeaders(headers: ReplyHeaders | undefined): ReplyHeaders {
  const kept = Object.entries(headers ?? {}).filter(([name]) => !/^set-cookie$/i.test(name));
  return Object.fromEntries(kept);
}
