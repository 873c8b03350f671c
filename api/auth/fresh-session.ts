import { ForbiddenError } from '../../src/lib/errors.js';
import { configurableAuthentication } from './authentication.js';
import { session, type SessionCaller } from './session.js';

/** How long a session stays fresh after signing in. */
export interface Freshness {
  readonly maxAgeMs: number;
}

/**
 * Checks that the session is fresh.
 *
 * @throws ForbiddenError with `REAUTHENTICATION_REQUIRED` if the sign-in is older than `maxAgeMs`.
 */
export function requireFresh({ signedInAt }: SessionCaller, { maxAgeMs }: Freshness): void {
  if (Date.now() - signedInAt.getTime() <= maxAgeMs) return;
  throw new ForbiddenError('Please sign in again first', 'REAUTHENTICATION_REQUIRED');
}

/**
 * A session of a recent sign-in, for actions that a stolen session must not reach. Signing in again by
 * any method makes a fresh session.
 */
export const freshSession = configurableAuthentication<Freshness, SessionCaller>({
  name: 'fresh-session',
  schemes: session.schemes,
  errors: session.errors,
  prepare(freshness, configs) {
    const signedIn = session.prepare(configs);
    return async (request) => {
      const found = await signedIn(request);
      if (found !== undefined) requireFresh(found.caller, freshness);
      return found;
    };
  },
});
