import { ProviderError, type ProviderFailure } from '../../provider-error.js';

/** @throws ProviderError for what is nested so deeply that it can be read, but not written. */
export function toJson(value: unknown, failure: ProviderFailure): string {
  try {
    return JSON.stringify(value);
  } catch (cause) {
    throw new ProviderError('gemini', failure, undefined, undefined, { cause });
  }
}
