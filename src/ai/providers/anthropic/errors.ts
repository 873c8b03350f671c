import * as z from 'zod';
import { ProviderError, type ProviderFailure } from '../../completion/provider-error.js';
import { tryParseJson } from '../../../lib/json.js';
import { failureOfStatus } from '../shared/failure-of-status.js';
import { retryAfterMs } from '../../../lib/retry-after.js';

/**
 * An overlong conversation has no type of its own, and is distinguishable only by wording that may change.
 */
const FAILURE_OF_TYPE: ReadonlyMap<string, ProviderFailure> = new Map([
  ['invalid_request_error', 'bad_request'],
  ['authentication_error', 'bad_key'],
  ['billing_error', 'bad_key'],
  ['permission_error', 'bad_key'],
  ['not_found_error', 'unknown_model'],
  ['request_too_large', 'too_long'],
  ['rate_limit_error', 'rate_limited'],
  ['timeout_error', 'timeout'],
  ['api_error', 'overloaded'],
  ['overloaded_error', 'overloaded'],
]);

/** Codes of an account that is blocked or out of money, reported under a misleading type. */
const ACCOUNT_CODES: ReadonlySet<string> = new Set([
  'contract_spend_limit_reached',
  'enforced_spend_limit_reached',
  'organization_on_hold',
]);

/** Words about an account without credit, which has neither a type nor a code of its own. */
const NO_CREDIT = /^Your credit balance is too low\b/;

const errorBody = z.object({
  type: z.literal('error'),
  error: z.object({
    type: z.string(),
    message: z.string().optional().catch(undefined),
    details: z.object({ error_code: z.string().nullish() }).nullish(),
  }),
});

/** Maps a non-2xx response, by its status if the body is cut off or has no error type. */
export function httpError(status: number, headers: Headers, text: string): ProviderError {
  const failure = saidFailure(tryParseJson(text)) ?? failureOfStatus(status);
  return new ProviderError('anthropic', failure, status, retryAfterMs(headers));
}

/** Maps an unexpected body under a 200: an Anthropic error, or garbage. */
export function errorInside(body: unknown): ProviderError {
  return new ProviderError('anthropic', saidFailure(body) ?? 'garbage');
}

export function unsupported(): ProviderError {
  return new ProviderError('anthropic', 'bad_request');
}

function saidFailure(body: unknown): ProviderFailure | undefined {
  const read = errorBody.safeParse(body);
  if (!read.success) return undefined;
  const { type, details, message = '' } = read.data.error;
  if (ACCOUNT_CODES.has(details?.error_code ?? '') || NO_CREDIT.test(message)) return 'bad_key';
  return FAILURE_OF_TYPE.get(type);
}
