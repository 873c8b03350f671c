import { ProviderError, type ProviderFailure } from '../../completion/provider-error.js';

/** Twice what a request's own body may be: beyond, some can read it but not write it down. */
const MAX_DEPTH = 200;

/** @throws ProviderError for what is nested more deeply. */
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
