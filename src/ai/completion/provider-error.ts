import type { ProviderName } from './provider-names.js';

/**
 * The kinds of provider failures:
 * - `bad_key`: the provider rejects the platform's key, or its account has no credit.
 * - `rate_limited`: too many requests, retry after `retryAfterMs` if given.
 * - `overloaded`: the provider has no capacity, or an internal error.
 * - `too_long`: the conversation exceeds the model's context.
 * - `refused`: the provider does not answer this content.
 * - `bad_request`: the provider rejects the request as invalid.
 * - `unknown_model`: the provider does not have the model.
 * - `unreachable`: no connection, or a broken one; with a status if the answer had begun.
 * - `timeout`: no answer in time.
 * - `garbage`: an answer in an invalid format or over the size limit.
 */
export type ProviderFailure =
  | 'bad_key'
  | 'rate_limited'
  | 'overloaded'
  | 'too_long'
  | 'refused'
  | 'bad_request'
  | 'unknown_model'
  | 'unreachable'
  | 'timeout'
  | 'garbage';

/** A failed attempt. Never contains the provider's text, which could quote the request. */
export class ProviderError extends Error {
  override readonly name = 'ProviderError';

  /** `retryAfterMs`: milliseconds to wait, as requested by the provider. */
  constructor(
    readonly provider: ProviderName,
    readonly failure: ProviderFailure,
    readonly status?: number,
    readonly retryAfterMs?: number,
    options?: ErrorOptions,
  ) {
    super(`${provider}: ${failure}${status === undefined ? '' : ` (${status})`}`, options);
  }
}
