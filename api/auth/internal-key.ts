import type { IncomingMessage } from 'node:http';
import { ForbiddenError, ServiceError } from '../../src/lib/errors.js';
import { configurableAuthentication, type Identity } from './authentication.js';
import { bearerOf, keyMatcher } from './bearer-token.js';
import { readIdentityHeaders, type ClaimedIdentity } from './identity-headers.js';

/** A holder of the internal key, which may speak for a user. */
export interface InternalCaller extends ClaimedIdentity {
  readonly kind: 'internal';
}

/** Header by which the web API states which side stores the answer to an `Idempotency-Key`. */
export const RESPONSE_STORED_BY_HEADER = 'x-answer-kept-by';

/** The operator's key, or two keys during a rotation (spec 5.3): sees all rows, or those of a named user. */
export const internalKey = configurableAuthentication<readonly string[], InternalCaller>({
  name: 'internal',
  schemes: [{ internalKey: { type: 'http', scheme: 'bearer', description: 'INTERNAL_API_KEY' } }],
  errors: [400, 401, 403],
  prepare(keys) {
    const matches = keyMatcher(keys);
    return ({ request }) => {
      if (keys.length === 0) throw new ServiceError(500, 'Server misconfigured');
      const presented = bearerOf(request);
      if (presented === undefined) return undefined;
      if (!matches(presented)) throw new ForbiddenError();
      return internalIdentity(request);
    };
  },
});

export function internalIdentity(request: IncomingMessage): Identity<InternalCaller> {
  const claimed = readIdentityHeaders(request);
  const { user } = claimed;
  return {
    caller: { kind: 'internal', ...claimed },
    tenant: user === undefined ? 'platform' : { userId: user.id },
    scope: user === undefined ? 'internal' : `internal:${user.id}`,
    limitedAs: user?.id,
    storesResponse: request.headers[RESPONSE_STORED_BY_HEADER] === 'caller',
  };
}
