import type { Logger } from 'pino';
import { isOfDeletedAccount } from '../../src/accounts/accounts/account-deletions.js';
import { describeError } from '../../src/lib/describe-error.js';
import {
  ExternalFaultError,
  ServiceError,
  TooManyRequestsError,
  UnauthorizedError,
} from '../../src/lib/errors.js';
import { isDatabaseAway } from '../../src/platform/database/database-away.js';
import { StillRunningError } from '../../src/platform/idempotency/idempotency-store.js';

export interface ErrorAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  /** Seconds to wait before a retry. */
  readonly retryAfter?: number;
  /** The limit that refused, which replaces the limits that the request passed. */
  readonly limitHeaders?: Readonly<Record<string, string>>;
}

/** Seconds, about the duration of a restart of PostgreSQL. */
const DATABASE_RETRY_AFTER = 5;

/**
 * The answer while PostgreSQL is unavailable. A change may have taken effect: a retry needs the same
 * `Idempotency-Key`.
 */
const DATABASE_AWAY: ErrorAnswer = {
  status: 503,
  body: { error: 'The database does not answer: retry later', retryAfter: DATABASE_RETRY_AFTER },
  retryAfter: DATABASE_RETRY_AFTER,
};

/** Returns the answer for an error; an unknown error only reveals its request id. */
export function errorAnswer(thrown: unknown, requestId: string): ErrorAnswer {
  // The account was deleted after the caller was authenticated.
  const error = isOfDeletedAccount(thrown) ? new UnauthorizedError() : thrown;
  if (isDatabaseAway(error)) return DATABASE_AWAY;
  if (!(error instanceof ServiceError)) {
    return { status: 500, body: { error: 'Internal server error', requestId } };
  }
  const code = error.code === undefined ? {} : { code: error.code };
  const body = { error: error.message, ...code, ...error.facts };
  if (error instanceof TooManyRequestsError) return { status: 429, body, ...refusedBy(error) };
  const retryAfter = error instanceof StillRunningError ? error.retryAfter : error.facts.retryAfter;
  return {
    status: error.status,
    body,
    ...(typeof retryAfter === 'number' && { retryAfter }),
  };
}

function refusedBy({ limit }: TooManyRequestsError) {
  const retryAfter = Math.max(1, Math.ceil(limit.resetS));
  const limitHeaders = {
    'RateLimit-Limit': String(limit.max),
    'RateLimit-Remaining': '0',
    'RateLimit-Reset': String(retryAfter),
  };
  return { retryAfter, limitHeaders };
}

/** Returns the answer to an error, and logs the details of a 5xx, which the caller must not see. */
export function loggedErrorAnswer(error: unknown, requestId: string, log: Logger): ErrorAnswer {
  const answer = errorAnswer(error, requestId);
  if (answer.status >= 500) {
    const level = error instanceof ExternalFaultError ? 'debug' : 'error';
    log[level]({ requestId, error: describeError(error) }, 'failed');
  }
  return answer;
}
