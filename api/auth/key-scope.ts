import { ServiceError } from '../../src/lib/errors.js';
import type { KeyScope } from '../../src/types/key-scopes.js';
import type { Authentication, Identity } from './authentication.js';

/** The scope that an endpoint requires of API keys; `any` is met by every key. */
export type RequiredScope = KeyScope | 'any';

/** 403: the API key lacks a scope. */
export class ScopeRequiredError extends ServiceError {
  override readonly name = 'ScopeRequiredError';

  constructor(required: KeyScope) {
    const message = `The API key lacks the scope ${required}: use a key with this scope`;
    super(403, message, 'SCOPE_REQUIRED', { required });
  }
}

/** Reports whether an authentication method accepts API keys. */
export const acceptsApiKeys = ({ schemes }: Authentication): boolean =>
  schemes.some((together) => 'apiKey' in together);

/**
 * Checks the scopes of a request's API key, if the request has one.
 * @throws ScopeRequiredError; TypeError for an endpoint that accepts a key and declares no scope.
 */
export function requireScope({ keyScopes }: Identity, required: RequiredScope | undefined): void {
  if (keyScopes === undefined || required === 'any') return;
  if (required === undefined) throw new TypeError('the endpoint declares no scope of API keys');
  if (!keyScopes.includes(required)) throw new ScopeRequiredError(required);
}
