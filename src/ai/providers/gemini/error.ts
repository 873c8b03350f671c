import * as z from 'zod';
import { ProviderError, type ProviderFailure } from '../../completion/provider-error.js';
import { isObject } from '../../../lib/json.js';
import { failureOfStatus } from '../shared/failure-of-status.js';
import { retryAfterMs } from '../../../lib/retry-after.js';

/** Google's common error format (google.rpc.Status with details). */
const details = z
  .array(z.object({ reason: z.string().optional(), retryDelay: z.string().optional() }).catch({}))
  .catch([]);

const status = z.object({
  code: z.number().optional().catch(undefined),
  status: z.string().optional().catch(undefined),
  details,
});

const BY_STATUS: ReadonlyMap<string, ProviderFailure> = new Map([
  ['UNAUTHENTICATED', 'bad_key'],
  ['PERMISSION_DENIED', 'bad_key'],
  ['RESOURCE_EXHAUSTED', 'rate_limited'],
  ['UNAVAILABLE', 'overloaded'],
  ['INTERNAL', 'overloaded'],
  ['UNKNOWN', 'overloaded'],
  ['ABORTED', 'overloaded'],
  ['CANCELLED', 'overloaded'],
  ['DEADLINE_EXCEEDED', 'overloaded'],
  ['NOT_FOUND', 'unknown_model'],
  ['INVALID_ARGUMENT', 'bad_request'],
  ['FAILED_PRECONDITION', 'bad_key'], // the account's country or billing
  ['OUT_OF_RANGE', 'bad_request'],
  ['UNIMPLEMENTED', 'bad_request'],
]);

/** Reads Gemini's error from a body or a stream event; undefined if the body and the status are no error. */
export function geminiError(body: unknown): ProviderError | undefined;
export function geminiError(body: unknown, httpStatus: number, headers: Headers): ProviderError;
export function geminiError(
  body: unknown,
  httpStatus?: number,
  headers?: Headers,
): ProviderError | undefined {
  // Without `alt=sse` a stream is an array, and so is its error.
  const answer: unknown = Array.isArray(body) ? body[0] : body;
  const said = isObject(answer) && isObject(answer.error) ? answer.error : undefined;
  if (!said && httpStatus === undefined) return undefined;
  const error = status.safeParse(said).data;
  const code = httpStatus ?? error?.code;
  let failure = BY_STATUS.get(error?.status ?? '') ?? failureOfStatus(code ?? 0);
  let waitMs = headers && retryAfterMs(headers);
  for (const { reason, retryDelay } of error?.details ?? []) {
    // Gemini reports a wrong or expired key as an invalid argument.
    if (reason === 'API_KEY_INVALID') failure = 'bad_key';
    waitMs = delayMs(retryDelay) ?? waitMs;
  }
  return new ProviderError('gemini', failure, code, waitMs);
}

/** Parses a Google duration (a number of seconds and an `s`), with the same bounds as Retry-After. */
function delayMs(delay: string | undefined): number | undefined {
  if (delay === undefined || !/^\d+(\.\d+)?s$/.test(delay)) return undefined;
  return retryAfterMs(new Headers({ 'retry-after': delay.slice(0, -1) }));
}
