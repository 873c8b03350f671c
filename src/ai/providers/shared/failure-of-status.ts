import type { ProviderFailure } from '../../completion/provider-error.js';

/** Returns the failure for an HTTP status, if the body names no known error. */
export function failureOfStatus(status: number): ProviderFailure {
  switch (status) {
    case 401:
    case 402:
    case 403:
      return 'bad_key';
    case 404:
      return 'unknown_model';
    case 408:
    case 504:
      return 'timeout';
    case 413:
      return 'too_long';
    case 429:
      return 'rate_limited';
    default:
      if (status < 400) return 'garbage';
      return status >= 500 ? 'overloaded' : 'bad_request';
  }
}
