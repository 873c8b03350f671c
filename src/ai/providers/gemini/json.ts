import { ProviderError, type ProviderFailure } from '../../completion/provider-error.js';

/** Twice the depth of a request body: some deeper values can be parsed but not serialized. */
const MAX_DEPTH = 200;

/** Serializes a value. @throws ProviderError if the value is nested too deeply. */
export function toJson(value: unknown, failure: ProviderFailure): string {
  let level = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) throw new ProviderError('gemini', failure);
    level = level.flatMap(childrenOf);
  }
  return JSON.stringify(value);
}

function childrenOf(value: unknown): readonly unknown[] {
  return typeof value === 'object' && value !== null ? Object.values(value) : [];
}
