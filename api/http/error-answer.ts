import { ServiceError } from '../../src/errors.js';
import { StillRunningError } from '../../src/idempotency/kept-answers.js';

export interface ErrorAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  /** Seconds after which to come again. */
  readonly retryAfter?: number;
}

/** What the caller is told about an error. Of an unknown one nothing but where to find it. */
export function errorAnswer(error: unknown, requestId: string): ErrorAnswer {
  if (!(error instanceof ServiceError)) {
    return { status: 500, body: { error: 'Internal server error', requestId } };
  }
  const code = error.code === undefined ? {} : { code: error.code };
  const body = { error: error.message, ...code, ...error.facts };
  const retryAfter = error instanceof StillRunningError ? error.retryAfter : error.facts.retryAfter;
  return { status: error.status, body, ...(typeof retryAfter === 'number' && { retryAfter }) };
}

const MAX_CAUSES = 5;

/**
 * What the log is told about an error. Only these fields: libraries hang queries with their values
 * and whole requests on their errors, and those can hold secrets.
 */
export function describeError(error: unknown, depth = 0): Readonly<Record<string, unknown>> {
  if (!(error instanceof Error)) return { thrown: typeof error };
  const code = 'code' in error && typeof error.code === 'string' ? { code: error.code } : {};
  const cause =
    error.cause === undefined || depth >= MAX_CAUSES
      ? {}
      : { cause: describeError(error.cause, depth + 1) };
  return { type: error.name, message: error.message, ...code, stack: error.stack, ...cause };
}
