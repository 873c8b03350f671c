import type { ProviderName } from './provider-names.js';

/**
 * How a provider fails:
 * - `bad_key`: it does not take our key, or our account is out of money.
 * - `rate_limited`: it wants fewer requests, for `retryAfterMs` if it says so.
 * - `overloaded`: it has no capacity, or a fault of its own.
 * - `too_long`: the conversation does not fit the model.
 * - `refused`: it will not answer this content.
 * - `bad_request`: it finds the request wrong.
 * - `unknown_model`: it does not have the model.
 * - `unreachable`: no connection, or it broke off; with a status when the answer had begun.
 * - `timeout`: no answer in time.
 * - `garbage`: an answer that is not in its own format, or is longer than we take.
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

/** One attempt at a provider that failed. Never holds what the provider said: that can quote us. */
export class ProviderError extends Error {
  /**
   * @param status the HTTP status, where there was one.
   * @param retryAfterMs milliseconds that the provider asks us to wait.
   */
  constructor(
    readonly provider: ProviderName,
    readonly failure: ProviderFailure,
    readonly status?: number,
    readonly retryAfterMs?: number,
    options?: ErrorOptions,
  ) {
    super(`${provider}: ${failure}${status === undefined ? '' : ` (${status})`}`, options);
    this.name = 'ProviderError';
  }
}
